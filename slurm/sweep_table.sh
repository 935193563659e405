#!/bin/bash
# Table of a sweep, submitted by sweep.sh with all run folders, of which some may not exist yet, and perhaps game=FILE.
#
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --gres=none
#SBATCH --time=00:10:00
#SBATCH --output=slurm/logs/%x-%j.out

# Slurm runs a copy of this file, in the folder from which it was submitted.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/sweep_table.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
begun=()
for run in "$@"; do
    if [[ $run == game=* || -f $run/config.yaml ]]; then begun+=("$run"); else say "not started: $run"; fi
done
folder=${1%/*}/compare-${SLURM_JOB_NAME#table-}
"${python[@]}" -m busso.evaluate.compare "folder='${folder//\'/\\\'}'" "${begun[@]}"
