#!/bin/bash
# TensorBoard on a node, for all runs; the log says what to type on your own machine to see it:
#
#   sbatch slurm/tensorboard.sh                 # the runs of this folder, or of BUSSO_RUNS
#   sbatch slurm/tensorboard.sh runs/tressette  # some of them
#   cat slurm/logs/tensorboard-*.out
#
# TensorBoard asks for no password: whoever can reach the node can look at the curves. It ends with scancel.
#
#SBATCH --job-name=tensorboard
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --gres=none
#SBATCH --time=08:00:00
#SBATCH --output=slurm/logs/%x-%j.out

# Slurm starts a copy of this file in the folder of sbatch.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/tensorboard.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
folder=${1:-${BUSSO_RUNS:-runs}}
node=${SLURMD_NODENAME:-$(hostname)}
port=$("${python[@]}" -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])') || exit 1
echo "on your own machine:  ssh -N -L 6006:$node:$port ${USER:-$(id -un)}@${SLURM_SUBMIT_HOST:-LOGIN-NODE}"
echo "then open             http://localhost:6006"
"${python[@]}" -m tensorboard.main --logdir "$folder" --host "$node" --port "$port" &
trap 'kill $! 2>/dev/null' TERM
wait $!
