#!/bin/bash
# Train every combination of a grid of settings, one per task of a job array:
#
#   sbatch --array=0-7 slurm/sweep.sh learner.lr=1e-3,3e-4 seed=0,1,2,3      # 2 x 4 combinations
#   sbatch --array=0-7%4 slurm/sweep.sh learner.lr=1e-3,3e-4 seed=0,1,2,3    # at most 4 at a time
#   sbatch --array=0-2 slurm/sweep.sh name=wide network.hidden=[512,512] 'seed=range(3)'
#   sbatch --array=3,5 slurm/sweep.sh learner.lr=1e-3,3e-4 seed=0,1,2,3      # only combinations 3 and 5, counted from 0
#
# A grid larger than the cluster's MaxArraySize (scontrol show config) takes several arrays; the offset is added to the
# number of the task:
#
#   sbatch --array=0-999 slurm/sweep.sh 'seed=range(2000)'
#   sbatch --array=0-999 slurm/sweep.sh 'seed=range(2000)' hydra.launcher.offset=1000
#
# Each run folder is runs/<game>/<its values>, with name= before them if given. The same command resumes unfinished
# runs. A job that waits for all tasks writes a table to runs/<game>/compare-<job>/ and to its log; `.venv/bin/busso
# compare 'runs/tressette/learner.lr=*'` shows it at any time.
#
# Without minutes= or episodes= each task trains for as long as --time allows; see train_dqn.sh.
# The options below are those of one task; change them as needed.
#
#SBATCH --job-name=sweep
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
#SBATCH --output=slurm/logs/%x-%A_%a.out

# Slurm runs a copy of this file, in the folder from which it was submitted.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/sweep.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/train.sh
source slurm/lib/train.sh
[[ ${SLURM_ARRAY_TASK_ID:-} ]] || fail "this is a job array: sbatch --array=0-7 slurm/sweep.sh learner.lr=1e-3,3e-4 seed=0,1,2,3"

overrides=(-m hydra/launcher=array "${overrides[@]}")

# The first task submits the table. It waits until the array is done, so a restarted task finds it in the queue.
table=table-$SLURM_ARRAY_JOB_ID
# shellcheck disable=SC2153 # Slurm sets it
if ((SLURM_ARRAY_TASK_ID == SLURM_ARRAY_TASK_MIN)) && [[ ! $(ask squeue --noheader --me --name="$table" --format=%i) ]]; then
    folders=$(env -u SLURM_ARRAY_TASK_ID "${python[@]}" -m busso.train "${overrides[@]}" hydra.verbose=false) || exit 2 # of all runs
    mapfile -t runs <<<"$folders"
    own=() # a game file, which the table needs too
    for word in "$@"; do [[ $word == game=*[./]* && $word != *,* ]] && own=("$word"); done
    # Without TMPDIR, since Slurm would create this task's folder again, and nothing would remove it. Without SBATCH_*,
    # which may request an array and GPUs.
    ((SLURM_ARRAY_TASK_MAX >= ${#runs[@]})) || (
        unset TMPDIR "${!SBATCH_@}"
        sbatch --job-name="$table" --partition="$SLURM_JOB_PARTITION" ${SLURM_JOB_ACCOUNT:+--account="$SLURM_JOB_ACCOUNT"} \
            ${SLURM_JOB_QOS:+--qos="$SLURM_JOB_QOS"} --dependency="afterany:$SLURM_ARRAY_JOB_ID" \
            slurm/sweep_table.sh "${runs[@]}" ${own[@]+"${own[@]}"}
    ) || say "no job for the table; run busso compare RUN RUN ... later"
fi

train "${overrides[@]}"
