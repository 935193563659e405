# shellcheck shell=bash
# Training in a job: Ray on its nodes, signals to the trainer, and back into the queue when time is up.
MISSING_NODES=69 # exit code of the trainer: not all nodes joined
CHECKPOINTED=75 # exit code of the trainer: stopped by USR1, or Ray or the GPU failed; it resumes from its checkpoint
trainer='' signals=0 signal='' told='' cancelled=''

# USR1, shortly before the time limit or a preemption: checkpoint, and back into the queue. TERM, of scancel, or when
# preemption comes without USR1: checkpoint only. A cancelled job must not come back, a preempted one is requeued by Slurm.
# The trainer gets one signal: a second one would end it in the middle of its checkpoint.
on_signal() { # NAME
    signals=$((signals + 1))
    [[ $1 == TERM ]] && cancelled=1
    say "SIG$1"
    signal=${signal:-$1}
    [[ $trainer ]] && tell
}

# Before anything that takes time: a signal without a handler ends this shell, and the job with it.
trap 'on_signal USR1' USR1
trap 'on_signal TERM' TERM
# shellcheck source=slurm/lib/job.sh
source slurm/lib/job.sh
# shellcheck source=slurm/lib/ray.sh
source slurm/lib/ray.sh
# shellcheck source=slurm/lib/budget.sh
source slurm/lib/budget.sh

# USR1 would kill a Python that does not yet catch or block it; TERM may, there is nothing to save yet.
tell() {
    [[ $told ]] && return
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

# shellcheck disable=SC2154 # module: what the trainer is, set by tune.sh
train() { # OVERRIDES...: ends the job
    local before code
    trap 'stop_ray; remove_tmp' EXIT
    set_minutes
    say "job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, start $((${SLURM_RESTART_COUNT:-0} + 1)): python -m ${module:-busso.train} $*"
    start_ray || exit 2
    if ((SLURM_JOB_NUM_NODES > 1)); then set -- "rollout.nodes=$SLURM_JOB_NUM_NODES" "$@"; fi
    [[ $signal == TERM ]] && exit 143
    # In the background, because a trap waits for a command in the foreground.
    "${python[@]}" -m "${module:-busso.train}" "$@" &
    trainer=$!
    [[ $signal ]] && tell # the signal came while Ray started
    while :; do # a signal ends `wait` early
        before=$signals
        wait "$trainer"
        code=$?
        ((signals == before)) && break
    done
    trainer=
    say "the trainer ended with exit code $code"
    ((code == MISSING_NODES)) && name_missing_nodes
    if [[ $ray_head && ! $signal ]] && ((code == CHECKPOINTED)); then
        say "unless the GPU failed, Ray is lost, see $(ray_log "${ray_nodes[0]}")" # its head may not have ended yet: the trainer is quicker
    fi
    trap - EXIT
    stop_ray
    remove_tmp
    if [[ ! $cancelled ]] && ((code == CHECKPOINTED)); then back_into_the_queue; fi
    exit "$code"
}

back_into_the_queue() {
    trap - USR1 TERM # else this shell keeps the node until Slurm kills it
    say "job $BUSSO_JOB goes back into the queue"
    slurm_requeues_it && say 'Slurm requeues it at its end' && return
    scontrol requeue "$BUSSO_JOB" && sleep 600 # Slurm ends this shell here
    printf 'error: Slurm did not requeue job %s; submit the same command again to go on\n' "$BUSSO_JOB" >&2
}

# Slurm 24.05 and newer requeues a job that ends in the grace time of its preemption. `scontrol requeue` does not undo that: the
# job would start once more after its last end. A job that often ends so is held, at MaxBatchRequeue.
slurm_requeues_it() {
    local config record partition requeues
    config=$(scontrol show config) && record=$(record_of_job) || return
    partition=$(scontrol --oneliner show partition "${SLURM_JOB_PARTITION-}") || return
    [[ $config =~ SLURM_VERSION\ *=\ ([0-9]+)\.([0-9]+) ]] && ((BASH_REMATCH[1] * 100 + 10#${BASH_REMATCH[2]} >= 2405)) &&
        [[ $config =~ PreemptType\ *=\ preempt/partition_prio && "$partition " =~ \ PreemptMode=(GANG,)?REQUEUE\  ]] &&
        [[ $record =~ \ PreemptTime=[0-9] && $record =~ \ Requeue=1\  && $record =~ \ BatchFlag=([0-9]+)\  ]] &&
        requeues=${BASH_REMATCH[1]} && [[ $config =~ MaxBatchRequeue\ *=\ ([0-9]+) ]] && ((requeues + 1 < BASH_REMATCH[1]))
}
