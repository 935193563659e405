#!/bin/bash
# Report the resources of a training job: GPUs and driver, CPUs, memory, disk, Ray's nodes, the rate of each stage.
#
#   sbatch slurm/doctor.sh game=spike learner.lr=1e-4      # settings as for train_dqn.sh
#   sbatch -N 4 -p long slurm/doctor.sh name=wide          # options of sbatch too
#   cat slurm/logs/doctor-*.out
#
# The job fails if a run with these settings would not start. Its resources are those of train_dqn.sh, except --time.
#
#SBATCH --job-name=doctor
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --gres=gpu:l40:1
#SBATCH --time=00:10:00
#SBATCH --output=slurm/logs/%x-%j.out

# Slurm runs a copy of this file, in the folder from which it was submitted.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/doctor.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
# shellcheck source=slurm/lib/ray.sh
source slurm/lib/ray.sh
trap 'stop_ray; remove_tmp' EXIT
start_ray || exit 2
if ((SLURM_JOB_NUM_NODES > 1)); then set -- "rollout.nodes=$SLURM_JOB_NUM_NODES" "${overrides[@]}"; else set -- "${overrides[@]}"; fi
COLUMNS=130 "${python[@]}" -m busso.train doctor "$@"
