#!/bin/bash
# Serve a table on a node, to play in your browser; the log has the ssh command to run on your own machine:
#
#   sbatch slurm/play.sh                                                        # starts in the menu
#   sbatch slurm/play.sh game=tressette opponents=runs/tressette/default match=21
#   sbatch slurm/play.sh watch=agents game=spike seats=4
#   cat slurm/logs/play-*.out
#
# Any setting of `busso play` may follow, except serve and port. The server listens on 127.0.0.1 of the node, which ssh
# reaches through the login node. The address contains a secret, and only you can read the log. Unfinished games are
# saved when their page is closed, at scancel, and before the time limit.
#
#SBATCH --job-name=play
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=8G
#SBATCH --gres=none
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --output=slurm/logs/%x-%j.out

# Slurm runs a copy of this file, in the folder from which it was submitted.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/play.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
[[ ! -f /dev/stdout ]] || chmod go= /dev/stdout || fail "cannot make the log private: others could read the address in it"
"${python[@]}" -m busso.play "$@" serve=true port=0 & # prints how to reach it
child=$!
trap 'kill "$child" 2>/dev/null' TERM
wait "$child" || wait "$child" # a signal interrupts the first, while tables are being saved
