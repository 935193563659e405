#!/bin/bash
# The table of a sweep; sweep.sh submits it with its own arguments. By hand: sbatch slurm/sweep_table.sh learner.lr=1e-3,3e-4 seed=0,1
#
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --gres=none
#SBATCH --time=00:10:00
#SBATCH --output=slurm/logs/%x-%j.out

# Slurm starts a copy of this file in the folder of sbatch.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/sweep_table.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
"${python[@]}" -m evaluate.compare --multirun "${overrides[@]}"
