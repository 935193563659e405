#!/bin/bash
# Train on a cluster, on one node or on several. Submit from the repository root, after `make install`:
#
#   sbatch slurm/train_dqn.sh experiment=hour minutes=null           # Tressette, for all of the job's time
#   sbatch slurm/train_dqn.sh game=spike learner.lr=1e-4 seed=3      # what follows the script are settings of the run
#   sbatch -N 4 -p long --gres=gpu:a100:1 slurm/train_dqn.sh         # what precedes it replaces the lines below
#   sbatch --gres=none slurm/train_dqn.sh                            # no GPU: the learner uses CPUs too
#
# minutes=null trains for the four hours of --time below, less five minutes for --signal and two to start and end; so does a command that
# names no budget. Another budget: --time before the script, or minutes=60 or episodes=1000000 after it.
#
# The script adds no settings of its own; its log has the command. experiment=hour is the network of Tressette for an hour or more,
# without it the recipe of nine minutes is trained (docs/explanation/experiments/budgets.md).
#
# The run is runs/<game>/<name>, and the same command resumes it. Five minutes before its time limit, or when it is preempted,
# the job writes a checkpoint and goes back into the queue: it resumes by itself.
#
# What you may want to change: the lines below, and slurm/site.env (modules, scratch folder; see site.env.example).
# Ray workers play on every CPU but the learner's: more CPUs, more games. The learner has the GPU of the first node. With
# rollout.gpus_per_worker=0.1 each worker has a tenth of a GPU, on any node. Choose a GPU with --gres, not with --gpus: they add up.
#
#SBATCH --job-name=train_dqn
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --gres=gpu:l40:1
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --open-mode=append
#SBATCH --output=slurm/logs/%x-%j.out

# Slurm starts a copy of this file in the folder of sbatch.
if [[ ! -f slurm/lib/train.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/train_dqn.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/train.sh
source slurm/lib/train.sh
train "${overrides[@]}"
