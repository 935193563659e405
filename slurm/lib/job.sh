# shellcheck shell=bash
# Start of every job: the site's settings, Python, a private temporary folder. Sourced from the repository root.
set -uo pipefail

say() { printf '%(%F %T)T %s\n' -1 "$*"; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}
ask() { # COMMAND of Slurm: again, since a busy controller may not answer the first time
    local tries
    for tries in 1 2 3 4; do
        "$@" && return 0 # in a trap, `return` alone gives the status from before the trap
        ((tries < 4)) && sleep 10
    done
    return 1
}

# sbatch exports the environment of its shell. Inside an allocation (salloc, JupyterHub, another job) many variables
# describe that allocation, and Slurm overwrites only those that it sets for this job too. So drop the variables of
# srun, steps and special jobs (man srun, man sbatch) unless Slurm's record of this job confirms them, and keep others,
# maybe the site's.
drop_foreign_variables() {
    local record name submitted=${SLURM_SUBMIT_HOST-}
    local foreign='ACCOUNT|ACCTG_FREQ|BCAST.*|BURST_BUFFER|CLUSTER_CONSTRAINT|COMPRESS|CONSTRAINT|CORE_SPEC'
    foreign+='|CPU_BIND.*|CPU_FREQ_REQ|CPUS_PER_GPU|CONTAINER.*|DEBUG.*|DELAY_BOOT|DEPENDENCY|DISABLE_STATUS|DIST.*|EPILOG|EXACT|EXCLUSIVE'
    foreign+='|EXIT_.*|EXPORT_ENV|GPU_(BIND|FREQ)|GPUS(_PER_.*)?|GRES.*|HET_.*|HINT|IMMEDIATE|KILL_BAD_EXIT|LABELIO'
    foreign+='|LAUNCH_NODE_IPADDR|MEM_BIND.*|MPI_TYPE|NETWORK|NO_KILL|NPROCS|NTASKS_PER_.*|OPEN_MODE|OVERCOMMIT|OVERLAP'
    foreign+='|PARTITION|PMI.*|POWER|PROFILE|PROLOG|QOS|REMOTE_CWD|REQ_SWITCH|RESERVATION|RESV_PORTS|SEND_LIBS|SIGNAL'
    foreign+='|SPREAD_JOB|SRUN_.*|STD(ERR|IN|OUT)MODE|STEP_.*|STEPID|TASK_(EPILOG|PROLOG)|TEST_EXEC|THREAD.*|TIMELIMIT'
    foreign+='|TRES_BIND|UMASK|UNBUFFEREDIO|USE_MIN_NODES|WAIT.*|WCKEY|WORKING_DIR'
    # A compute node that submitted this job is not a login node.
    [[ $(scontrol --oneliner show node "${submitted%%.*}" 2>/dev/null) == NodeName=* ]] && foreign+='|SUBMIT_HOST'
    if record=$(record_of_job); then
        [[ $record == *' Restarts=0 '* ]] && foreign+='|RESTART_COUNT'
        [[ $record == *' ArrayTaskId='* ]] || foreign+='|ARRAY_.*'
        [[ $record == *' Account=(null) '* ]] && foreign+='|JOB_ACCOUNT'
        [[ $record == *' QOS=(null) '* ]] && foreign+='|JOB_QOS'
        [[ $record == *" NumTasks=${SLURM_NTASKS-} "* ]] || foreign+='|NTASKS'
        [[ $record == *" CPUs/Task=${SLURM_CPUS_PER_TASK-} "* ]] || foreign+='|CPUS_PER_TASK|TRES_PER_TASK'
        # srun fails if it finds two of these.
        [[ $record == *' MemPerTres='* ]] || foreign+='|MEM_PER_GPU'
        [[ $record != *' MemPerTres='* && $record == *' MinMemoryCPU='* ]] || foreign+='|MEM_PER_CPU'
        [[ $record != *' MemPerTres='* && $record == *' MinMemoryNode='[1-9]* ]] || foreign+='|MEM_PER_NODE'
    else
        say "scontrol does not show job $SLURM_JOB_ID: SLURM_MEM_PER_* and the like may be those of another job"
    fi
    for name in "${!SLURM_@}"; do
        [[ $name =~ ^SLURM_($foreign)$ ]] && unset "$name"
    done
    unset "${!SRUN_@}" "${!SQUEUE_@}" # the user's filters would hide this job from squeue
}

record_of_job() { # for an array it shows every task, and the last one has the array's id
    scontrol --oneliner show job "$SLURM_JOB_ID" | grep "^JobId=$SLURM_JOB_ID "
}

[[ ${SLURM_JOB_ID:-} ]] || fail "this runs as a Slurm job: sbatch slurm/${0##*/}"
drop_foreign_variables
if [[ -f slurm/site.env ]]; then
    ! grep -q $'\r' slurm/site.env || fail "slurm/site.env: line ends of Windows; remove them: sed -i 's/\\r\$//' slurm/site.env"
    set +u -a # module systems use unset variables; other nodes need these settings
    # shellcheck source=/dev/null
    source slurm/site.env
    set -u +a
fi

for name in BUSSO_PYTHON BUSSO_RUNS BUSSO_TMP BUSSO_CACHE; do # the shell does not expand ~ within quotes
    value=" ${!name-}"
    [[ $value == *' ~/'* ]] && value=${value// '~'\// "$HOME"/} && printf -v "$name" %s "${value# }"
done
# An array, to allow `apptainer exec --nv busso.sif python`.
read -ra python <<<"${BUSSO_PYTHON:-.venv/bin/python}"
command -v "${python[0]}" >/dev/null || fail "no ${python[0]} on $(hostname):" \
    "run 'make install' on the login node first, or set BUSSO_PYTHON in slurm/site.env"

# Ray's socket paths have at most 107 bytes, of which Ray needs 64 after $tmp/ray.
tmp=${BUSSO_TMP:-/tmp}/busso-$SLURM_JOB_ID
((${#tmp} <= 39)) || fail "BUSSO_TMP: $tmp has ${#tmp} characters, Ray's sockets there allow 39"
remove_tmp() {
    local tries
    for tries in 1 2 3 4 5; do
        rm -rf "$tmp" 2>/dev/null && return
        sleep 0.5 # an ending process may still write there
    done
    say "could not remove $tmp on $(hostname) ($tries tries)"
}
remove_tmp # left by an earlier start that was killed
mkdir -m 700 "$tmp" || fail "cannot make $tmp on $(hostname)"
trap remove_tmp EXIT

# This array task's name for `scontrol requeue` and `squeue`; the last task's job id is the array's, meaning all tasks.
export BUSSO_JOB=$SLURM_JOB_ID
if [[ ${SLURM_ARRAY_TASK_ID:-} ]]; then BUSSO_JOB=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID; fi

export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$PWD PYTHONUNBUFFERED=1 TMPDIR=$tmp RAY_TMPDIR=$tmp
# Ray's memory monitor watches the whole node, and would kill workers because of other jobs' memory.
# Its other settings are in train/rollout/ray/private.py.
export RAY_USAGE_STATS_ENABLED=0 RAY_memory_monitor_refresh_ms=0
unset RAY_ADDRESS # of another cluster

# Store runs in the site's scratch folder unless the command line says otherwise.
# shellcheck disable=SC2034
overrides=(${BUSSO_RUNS:+"runs='${BUSSO_RUNS//\'/\\\'}'"} "$@")
