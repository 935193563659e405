#!/bin/bash
# A table in your browser, played on a node; the log says what to type on your own machine to reach it:
#
#   sbatch slurm/play.sh                                                        # begins in the menu
#   sbatch slurm/play.sh game=tressette opponents=runs/tressette/default match=21
#   sbatch slurm/play.sh watch=agents game=spike seats=4
#   cat slurm/logs/play-*.out
#
# Any setting of `busso play` may follow, but for serve and port. It listens on the node itself (127.0.0.1), and your ssh
# goes through the login node to that node. The address has a secret in it, and no other user can read the log. Unfinished
# games are saved when their page is closed, at scancel, and before the time limit.
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

# Slurm starts a copy of this file in the folder of sbatch.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/play.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
[[ ! -f /dev/stdout ]] || chmod go= /dev/stdout || fail "others could read the address in the log"
"${python[@]}" -m busso.play "$@" serve=true port=0 & # says how to reach it
child=$!
trap 'kill "$child" 2>/dev/null' TERM
wait "$child" || wait "$child" # a signal ends the first before the tables are saved
