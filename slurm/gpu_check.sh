#!/bin/bash
# Check busso on a GPU: tests, figures and ten minutes of training, in one report. About 25 minutes.
#
#   sbatch slurm/gpu_check.sh                             # gpu_check/gpu_check.md and gpu_check/gpu_check.json
#   sbatch slurm/gpu_check.sh folder=gpu_check_2          # settings of `python -m train.gpu_check`, conf/gpu_check.yaml
#   sbatch --gres=gpu:h100:1 slurm/gpu_check.sh folder=gpu_check_h100
#
# The same command resumes a stopped check; after the last part it repeats those that did not pass. The job fails if a part
# failed. CUDA's compute-sanitizer runs if it is on PATH: load the site's CUDA module in slurm/site.env.
# The lines below are those of train_dqn.sh, but for the time.
#
#SBATCH --job-name=gpu_check
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --gres=gpu:l40:1
#SBATCH --time=00:45:00
#SBATCH --output=slurm/logs/%x-%j.out

# Slurm starts a copy of this file in the folder of sbatch.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/gpu_check.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
"${python[@]}" -m train.gpu_check "$@"
