#!/bin/bash
# Train on one or more nodes of a cluster. Submit from the repository root, after `make install`:
#
#   sbatch slurm/train_dqn.sh experiment=hour minutes=null           # Tressette, for the job's whole time
#   sbatch slurm/train_dqn.sh game=spike learner.lr=1e-4 seed=3      # settings of the run follow the script
#   sbatch -N 4 -p long --gres=gpu:a100:1 slurm/train_dqn.sh         # options of sbatch precede it
#   sbatch --gres=none slurm/train_dqn.sh                            # no GPU: the learner uses CPUs too
#
# With minutes=null, or if no budget is given, the job trains for the four hours of --time below, less five minutes for
# --signal and two to start and end. For another budget, give --time before the script, or minutes=60 or
# episodes=1000000 after it.
#
# The script adds no settings; its log shows the command. experiment=hour is for training Tressette for an hour or
# more; without it, the recipe for nine minutes is used (docs/explanation/experiments/budgets.md).
#
# The run folder is runs/<game>/<name>, and the same command resumes it. Five minutes before its time limit, or when
# preempted, the job writes a checkpoint and is requeued, and the run resumes automatically.
#
# Change the options below as needed, and slurm/site.env (modules, scratch folder; see site.env.example).
# Ray workers play on every CPU except the learner's, so more CPUs play more games. The learner has the GPU of the first
# node. With rollout.gpus_per_worker=0.1 each worker has a tenth of a GPU, on any node. Choose a GPU with --gres, not
# --gpus, which adds to --gres.
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

# Slurm runs a copy of this file, in the folder from which it was submitted.
if [[ ! -f slurm/lib/train.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/train_dqn.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/train.sh
source slurm/lib/train.sh
train "${overrides[@]}"
