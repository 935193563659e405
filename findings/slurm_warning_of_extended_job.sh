#!/usr/bin/env bash
# Slurm 22.05.8 (and 26.05.5): a job whose time limit is raised after its `--signal` gets no signal before the new limit.
#
# Two jobs with --signal=B:USR1@30, one of two minutes, one of one minute that is raised to two when its signal comes:
#
#   limit 2:00 from the start   USR1 30 to 90 s before it
#   limit 1:00, then 2:00       USR1 before 1:00, and none before 2:00; then SIGTERM
#
# A good guess is a second signal, since Slurm looks at the job's present limit every half minute, and one is sent again
# after each requeue. Slurm notes that the job was warned, and takes it back only at a new start.
# Whoever asks for more time for a job that saves at the signal meets it: the time that was gained is lost.
#
# Run it as root; see slurm_in_a_root.bash. It takes three minutes more, and ends with 1 if the results differ from these.
source "$(dirname "$0")/slurm_in_a_root.bash"
in_slurm slurm==22.05.8 <<'BASH'
cat >job.sh <<'JOB'
#!/bin/bash
trap 'echo "USR1 in minute $((SECONDS / 60 + 1))" >>"$SLURM_JOB_NAME"
    [[ $SLURM_JOB_NAME == plain ]] || scontrol update jobid=$SLURM_JOB_ID TimeLimit=2' USR1
trap 'echo TERM >>"$SLURM_JOB_NAME"; exit 0' TERM
while :; do sleep 1 & wait; done
JOB
for limit in 2 1; do
    name=plain
    ((limit == 2)) || name=extended
    sbatch --mem=50M --time="$limit" --signal=B:USR1@30 --job-name="$name" job.sh >/dev/null
done
while [[ $(squeue -h) ]]; do sleep 1; done
found="plain: $(paste -sd ' ' plain)
extended: $(paste -sd ' ' extended)"
echo "$found"
[[ $found == 'plain: USR1 in minute '[12]' TERM
extended: USR1 in minute 1 TERM' ]]
BASH
