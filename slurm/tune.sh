#!/bin/bash
# Search for hyperparameters: every task of the array runs one trial at a time of the same study.
#
#   sbatch --array=0-3 slurm/tune.sh study=lr trials=40 minutes=30 learner.lr='tag(log,interval(1e-4,1e-2))' learner.batch_size=512,1024
#   sbatch --array=0-3 slurm/tune.sh study=first game=spike minutes=30 +search=dqn # the keys of conf/search/dqn.yaml
#
# Trials are run folders, runs/<game>/<study>/trial-000 and so on; see docs/howto/tuning.md. A task ends when the study
# has trials= trials. A stopped task resumes its trial, and the same command resumes the study.
#
# The options below are those of one task; change them as needed.
#
#SBATCH --job-name=tune
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
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/tune.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/train.sh
source slurm/lib/train.sh
# shellcheck disable=SC2034 # read by train
module=busso.train.tune
train "${overrides[@]}"
