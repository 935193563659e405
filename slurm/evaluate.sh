#!/bin/bash
# Play a tournament on a node: every pair of players on the same deals, in both seatings.
#
#   sbatch slurm/evaluate.sh 'players=[runs/tressette/default,greedy,random]' deals=100000 seed=7
#   sbatch slurm/evaluate.sh 'players=[monte_carlo:samples:100,greedy,random]' until=0.5% folder=tournaments/search
#   sbatch --gres=gpu:l40:1 slurm/evaluate.sh game=spike 'players=[runs/spike/default,cautious]'
#
# Arguments after the script are settings of `busso tournament`, see conf/tournament.yaml. The log has the tables;
# results.csv, results.json and ratings.csv are in tournaments/<game>/<time>/, or in FOLDER with folder=FOLDER. With that,
# the same command resumes the tournament after any interruption.
# All CPUs of the job play if more than five minutes of work are left. Usual networks gain little from a GPU.
#
#SBATCH --job-name=evaluate
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --mem-per-cpu=2G
#SBATCH --gres=none
#SBATCH --time=04:00:00
#SBATCH --output=slurm/logs/%x-%j.out

# Slurm runs a copy of this file, in the folder from which it was submitted.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/evaluate.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
if ((${SLURM_JOB_NUM_NODES:-1} > 1)); then
    echo "error: a tournament plays on one node; ask for more CPUs with -c" >&2
    exit 2
fi
"${python[@]}" -m busso.evaluate.tournament "$@"
