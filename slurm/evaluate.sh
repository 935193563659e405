#!/bin/bash
# A tournament on a node: every pair of players on the same deals, both ways round.
#
#   sbatch slurm/evaluate.sh 'players=[runs/tressette/default,greedy,random]' deals=100000 seed=7
#   sbatch --gres=gpu:l40:1 slurm/evaluate.sh game=spike 'players=[runs/spike/default,cautious]'
#
# What follows the script are settings of `python -m evaluate.tournament`, conf/tournament.yaml. The table is in the log,
# and results.csv and results.json in tournaments/<game>/<time>/, or in folder=...
# One CPU plays; a network of the usual size gains little from a GPU.
#
#SBATCH --job-name=evaluate
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=8G
#SBATCH --gres=none
#SBATCH --time=01:00:00
#SBATCH --output=slurm/logs/%x-%j.out

# Slurm starts a copy of this file in the folder of sbatch.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/evaluate.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
"${python[@]}" -m evaluate.tournament "$@"
