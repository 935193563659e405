#!/usr/bin/env bash
# Slurm 22.05.8 (and 26.05.5): `sbatch --wait` ends with 0 for a job that was cancelled, or ran into its time limit, if the
# script ends with 0 at SIGTERM; a dependency by afterok is not fulfilled.
#
#   scancel      JobState=CANCELLED ExitCode=0:0   sbatch --wait: 0   afterok: never starts
#   time limit   JobState=TIMEOUT ExitCode=0:0     sbatch --wait: 0   afterok: never starts
#
# A good guess is that both ways of waiting agree, or that a state other than COMPLETED is a failure: for a job that is
# OUT_OF_MEMORY sbatch --wait ends with 1, though its script ended with 0.
# Whoever chains jobs by `sbatch --wait a.sh && sbatch b.sh` meets it, if a.sh cleans up at SIGTERM: b.sh runs after half
# of the work. A script should end with 128 + 15 there.
#
# Run it as root; see slurm_in_a_root.bash. It takes two minutes more, and ends with 1 if the results differ from these.
source "$(dirname "$0")/slurm_in_a_root.bash"
in_slurm <<'BASH'
printf '%s\n' '#!/bin/bash' 'trap "exit 0" TERM' 'while :; do sleep 1 & wait; done' >job.sh
for name in cancel limit; do
    { sbatch --wait --mem=50M --time=1 --job-name="$name" job.sh && echo 0 || echo "$?"; } 2>&1 >"$name" | cat &
    until [[ $(squeue -h --name="$name" -o %T) == RUNNING ]]; do sleep 0.5; done
done
found=
for name in cancel limit; do
    job=$(squeue -h --name="$name" -o %i)
    after=$(sbatch --parsable --mem=50M --dependency="afterok:$job" --wrap=true)
    if [[ $name == cancel ]]; then scancel "$job"; fi
    until [[ $(wc -l <"$name") == 2 ]]; do sleep 1; done
    for _ in {1..60}; do [[ $(scontrol show job "$after" -o) == *DependencyNeverSatisfied* ]] && break; sleep 1; done
    found+="$(scontrol show job "$job" -o | grep -oE '(JobState|ExitCode)=\S+' | tr '\n' ' ')"
    found+="wait $(tail -n 1 "$name") $(scontrol show job "$after" -o | grep -o 'Reason=\S*'); "
done
echo "$found"
never='wait 0 Reason=DependencyNeverSatisfied; '
[[ $found == "JobState=CANCELLED ExitCode=0:0 ${never}JobState=TIMEOUT ExitCode=0:0 $never" ]]
BASH
