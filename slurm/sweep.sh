#!/bin/bash
# Train every combination of a grid of settings, each as one task of a job array:
#
#   sbatch --array=0-7 slurm/sweep.sh learner.lr=1e-3,3e-4 seed=0,1,2,3      # 2 x 4 combinations
#   sbatch --array=0-7%4 slurm/sweep.sh learner.lr=1e-3,3e-4 seed=0,1,2,3    # at most 4 at a time
#   sbatch --array=0-2 slurm/sweep.sh name=wide network.hidden=[512,512] 'seed=range(3)'
#   sbatch --array=3,5 slurm/sweep.sh learner.lr=1e-3,3e-4 seed=0,1,2,3      # only the combinations 3 and 5, counted from 0
#
# Each is the run runs/<game>/<its values>, with name= before them if given. The same command resumes what is not
# finished. A job that waits for all tasks writes a table, runs/<game>/compare-<job>/, and its log shows it;
# `.venv/bin/busso compare 'runs/tressette/learner.lr=*'` shows it at any time.
#
# Without minutes= or episodes= each task trains for as long as --time allows; see train_dqn.sh.
# What you may want to change: the lines below, for one task each.
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

# Slurm starts a copy of this file in the folder of sbatch.
if [[ ! -f slurm/lib/job.sh ]]; then
    echo "error: $PWD is not the root of busso; submit from there: sbatch slurm/sweep.sh" >&2
    exit 2
fi
# shellcheck source=slurm/lib/train.sh
source slurm/lib/train.sh
[[ ${SLURM_ARRAY_TASK_ID:-} ]] || fail "this is a job array: sbatch --array=0-7 slurm/sweep.sh learner.lr=1e-3,3e-4 seed=0,1,2,3"

overrides=(-m hydra/launcher=array "${overrides[@]}")

# The first task submits the table, once: while the array is not done, the table waits, and a restart finds it in the queue.
table=table-$SLURM_ARRAY_JOB_ID
# shellcheck disable=SC2153 # Slurm sets it
if ((SLURM_ARRAY_TASK_ID == SLURM_ARRAY_TASK_MIN)) && [[ ! $(squeue --noheader --me --name="$table" --format=%i) ]]; then
    folders=$(env -u SLURM_ARRAY_TASK_ID "${python[@]}" -m busso.train "${overrides[@]}" hydra.verbose=false) || exit 2 # those of all runs
    mapfile -t runs <<<"$folders"
    own=() # a game in a file, which the table has to be told as well
    for word in "$@"; do [[ $word == game=*[./]* && $word != *,* ]] && own=("$word"); done
    # Without TMPDIR: Slurm makes that folder where the job starts, and this task's is not removed a second time. And without
    # SBATCH_*, which may ask for an array and its GPUs.
    ((SLURM_ARRAY_TASK_MAX >= ${#runs[@]})) || (
        unset TMPDIR "${!SBATCH_@}"
        sbatch --job-name="$table" --partition="$SLURM_JOB_PARTITION" ${SLURM_JOB_ACCOUNT:+--account="$SLURM_JOB_ACCOUNT"} \
            ${SLURM_JOB_QOS:+--qos="$SLURM_JOB_QOS"} --dependency="afterany:$SLURM_ARRAY_JOB_ID" \
            slurm/sweep_table.sh "${runs[@]}" ${own[@]+"${own[@]}"}
    ) || say "no job for the table; later say: busso compare RUN RUN ..."
fi

train "${overrides[@]}"
