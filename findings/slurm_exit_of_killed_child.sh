#!/usr/bin/env bash
# Slurm 22.05.8 (and 26.05.5): srun fails for a step that ended with 0, and the job that ended with 0 is OUT_OF_MEMORY or
# COMPLETED, depending on srun.
#
# A shell starts a child, which is killed for memory; the shell notices, goes on and ends with 0:
#
#   in the batch script          child 137           JobState=OUT_OF_MEMORY ExitCode=0:125, afterok never starts
#   as a step, `srun bash ...`   child 137, srun 1   JobState=COMPLETED ExitCode=0:0
#
# Good guesses are that the exit code of the process decides in both (0, and COMPLETED), or that the memory event does
# (137 of srun, and OUT_OF_MEMORY in both). But a step with a killed child has srun's code 1, although its task ended
# with 0, and a job is OUT_OF_MEMORY only if the event was in the batch script's own step.
# Whoever replaces killed workers meets it: pools of processes, Ray, make -k.
#
# Run it as root; see slurm_in_a_root.bash. It ends with 1 if the results differ from these.
source "$(dirname "$0")/slurm_in_a_root.bash"
in_slurm slurm==22.05.8 <<'BASH'
cat >child.sh <<'CHILD'
#!/bin/bash
python3 -c 'b = bytearray(600 << 20)
for k in range(0, len(b), 4096): b[k] = 1' 2>/dev/null
echo "child $?" >>"$SLURM_JOB_NAME"
exit 0
CHILD
printf '%s\n' '#!/bin/bash' 'srun bash /jobs/child.sh' 'echo "srun $?" >>step' 'exit 0' >step.sh
state() { scontrol show job "$1" -o | grep -oE '(JobState|ExitCode)=\S+' | paste -sd ' '; }
batch=$(sbatch --parsable --mem=200M --job-name=batch child.sh)
step=$(sbatch --parsable --mem=200M --job-name=step step.sh)
after=$(sbatch --parsable --mem=50M --dependency="afterok:$batch" --wrap=true)
while [[ $(squeue -h -j "$batch,$step") ]]; do sleep 0.5; done
for _ in {1..60}; do [[ $(scontrol show job "$after" -o) == *DependencyNeverSatisfied* ]] && break; sleep 0.5; done
found="$(cat batch) $(state "$batch")
$(paste -sd " " step) $(state "$step")
$(scontrol show job "$after" -o | grep -o 'Reason=DependencyNeverSatisfied')"
echo "$found"
[[ $found == 'child 137 JobState=OUT_OF_MEMORY ExitCode=0:125
child 137 srun 1 JobState=COMPLETED ExitCode=0:0
Reason=DependencyNeverSatisfied' ]]
BASH
