# shellcheck shell=bash
# Training in a job: Ray on its nodes, signals to the trainer, and requeueing at the time limit.
MISSING_NODES=69 # exit code of the trainer: not all nodes joined
CHECKPOINTED=75 # exit code of the trainer: stopped by USR1, or Ray or the GPU failed; it resumes from its checkpoint
trainer='' signals=0 signal='' told='' cancelled='' held=''

# USR1, shortly before the time limit or a preemption: checkpoint, then requeue. TERM, from scancel or from a preemption
# without USR1: checkpoint only, since a cancelled job must not come back and Slurm requeues a preempted one.
# The trainer gets only one signal: a second one would end it during its checkpoint.
on_signal() { # NAME
    signals=$((signals + 1))
    [[ $1 == TERM ]] && cancelled=1
    say "SIG$1"
    signal=${signal:-$1}
    [[ $trainer ]] && tell
}

# Before anything slow: a signal without a handler would end this shell and the job.
trap 'on_signal USR1' USR1
trap 'on_signal TERM' TERM
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
# shellcheck source=slurm/lib/ray.sh
source slurm/lib/ray.sh
# shellcheck source=slurm/lib/budget.sh
source slurm/lib/budget.sh

# Wait until Python catches or blocks USR1, which would kill it; TERM may, since there is nothing to save yet.
tell() {
    [[ $told ]] || hold && return
    told=1
    local bit mask masks
    bit=$(($(kill -l "$signal") - 1))
    while [[ $signal == USR1 ]] && kill -0 "$trainer" 2>/dev/null; do
        mapfile -t masks < <(awk '/^Sig(Blk|Cgt)/ {print $2}' "/proc/$trainer/status" 2>/dev/null)
        for mask in "${masks[@]}"; do
            ((16#$mask >> bit & 1)) && break 2
        done
        sleep 0.2
    done
    kill "-$signal" "$trainer" 2>/dev/null
}

# Succeeds if USR1 is held back: it then comes again. In a trap, `return` alone gives the status from before the trap.
hold() {
    local seconds
    [[ ! $cancelled ]] && seconds=$(seconds_to_hold "$SECONDS") || return 1
    [[ $held ]] && return 0
    say "USR1 is held back for $seconds s, unless the job is preempted"
    { read -rt "$seconds" <> <(:); kill -USR1 $$; } & # no `sleep`, which would outlive it
    held=$!
}

# shellcheck disable=SC2154 # module: the trainer, set by tune.sh
train() { # OVERRIDES...: ends the job
    local before code
    trap 'stop_ray; remove_tmp' EXIT
    set_minutes
    say "job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, start $((${SLURM_RESTART_COUNT:-0} + 1)): python -m ${module:-busso.train} $*"
    start_ray || exit 2
    if ((SLURM_JOB_NUM_NODES > 1)); then set -- "rollout.nodes=$SLURM_JOB_NUM_NODES" "$@"; fi
    [[ $signal == TERM ]] && exit 143
    # In the background, because a trap runs only after a foreground command has ended.
    "${python[@]}" -m "${module:-busso.train}" "$@" &
    trainer=$!
    [[ $signal ]] && tell # it came while Ray started
    while :; do # a signal interrupts `wait`
        before=$signals
        wait "$trainer"
        code=$?
        ((signals == before)) && break
    done
    trainer=
    [[ $held ]] && kill "$held" 2>/dev/null
    say "the trainer ended with exit code $code"
    ((code == MISSING_NODES)) && name_missing_nodes
    if [[ $ray_head && ! $signal ]] && ((code == CHECKPOINTED)); then
        say "unless the GPU failed, Ray is lost, see $(ray_log "${ray_nodes[0]}")" # its head may end after the trainer
    fi
    trap - EXIT
    stop_ray
    remove_tmp
    if [[ ! $cancelled ]] && ((code == CHECKPOINTED)); then back_into_the_queue; fi
    exit "$code"
}

back_into_the_queue() {
    trap - USR1 TERM # or this shell would keep the node until Slurm kills it
    say "job $BUSSO_JOB goes back into the queue"
    slurm_requeues_it && say 'Slurm requeues it at its end' && return
    ask scontrol requeue "$BUSSO_JOB" && sleep 600 # Slurm ends this shell meanwhile
    printf 'error: Slurm did not requeue job %s; submit the same command again to resume\n' "$BUSSO_JOB" >&2
}

# Slurm 24.05 and newer requeues a job that ends within the grace time of its preemption. An additional `scontrol
# requeue` would start the job once more after it is complete. After MaxBatchRequeue such requeues Slurm holds the job.
slurm_requeues_it() {
    local config record partition requeues
    config=$(scontrol show config) && record=$(record_of_job) || return
    partition=$(scontrol --oneliner show partition "${SLURM_JOB_PARTITION-}") || return
    [[ $config =~ SLURM_VERSION\ *=\ ([0-9]+)\.([0-9]+) ]] && ((BASH_REMATCH[1] * 100 + 10#${BASH_REMATCH[2]} >= 2405)) &&
        [[ $config =~ PreemptType\ *=\ preempt/partition_prio && "$partition " =~ \ PreemptMode=(GANG,)?REQUEUE\  ]] &&
        [[ $record =~ \ PreemptTime=[0-9] && $record =~ \ Requeue=1\  && $record =~ \ BatchFlag=([0-9]+)\  ]] &&
        requeues=${BASH_REMATCH[1]} && [[ $config =~ MaxBatchRequeue\ *=\ ([0-9]+) ]] && ((requeues + 1 < BASH_REMATCH[1]))
}
