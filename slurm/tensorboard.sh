#!/bin/bash
# Serve TensorBoard for all runs on a node; the log has the ssh command to run on your own machine:
#
#   sbatch slurm/tensorboard.sh                 # runs/ of this folder, or BUSSO_RUNS
#   sbatch slurm/tensorboard.sh runs/tressette  # only this folder
#   sbatch slurm/tensorboard.sh --public        # where ssh to a compute node is forbidden; a folder may follow
#   cat slurm/logs/tensorboard-*.out
#
# It listens on 127.0.0.1 of the node, which ssh reaches through the login node. With --public it listens on the node's
# address, and ssh to the login node is enough. But TensorBoard has no password, so every user of the cluster can then
# see the curves. scancel ends it.
#
#SBATCH --job-name=tensorboard
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --gres=none
#SBATCH --time=08:00:00
#SBATCH --output=slurm/logs/%x-%j.out

# Slurm runs a copy of this file, in the folder from which it was submitted.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/tensorboard.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
public=''
if [[ ${1:-} == --public ]]; then
    public=1
    shift
fi
[[ ${1:-} != -* ]] || fail "$1: the only option is --public, before the folder"
folder=${1:-${BUSSO_RUNS:-runs}}
node=${SLURMD_NODENAME:-$(hostname)}
if [[ $public ]]; then host=$node; else host=127.0.0.1; fi
# Port 0: any free port, which TensorBoard prints.
"${python[@]}" -m tensorboard.main --logdir "$folder" --host "$host" --port 0 2> >(tee "$tmp/says" >&2) &
child=$!
trap 'kill "$child" 2>/dev/null' TERM
port=''
while [[ ! $port ]] && kill -0 "$child" 2>/dev/null; do
    sleep 0.2
    port=$(sed -n 's|^TensorBoard .* at http://[^ ]*:\([0-9]*\)/.*|\1|p' "$tmp/says" 2>/dev/null)
done
[[ $port ]] || {
    wait "$child"
    exit
}
user=${USER:-$(id -un)} login=${SLURM_SUBMIT_HOST:-LOGIN-NODE}
if [[ $public ]]; then
    echo "warning: everybody on the cluster can look at http://$node:$port"
    echo "on your own machine:  ssh -N -L 6006:$node:$port $user@$login"
else
    echo "on your own machine:  ssh -N -J $user@$login -L 6006:127.0.0.1:$port $user@$node"
    echo "                      (if you may not ssh to a compute node: sbatch slurm/tensorboard.sh --public)"
fi
echo "then open             http://localhost:6006"
wait "$child" || wait "$child" # a signal interrupts the first, while TensorBoard still uses $tmp
