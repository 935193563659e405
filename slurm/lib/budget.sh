# shellcheck shell=bash
# Training time of a job: its time limit less the time to stop before it.
SIGNAL_SECONDS=300 # USR1 comes this long before the limit: `#SBATCH --signal=B:USR1@300` in train_dqn.sh, sweep.sh and tune.sh
EARLY_SECONDS=60 # Slurm may send it this much earlier
CLOSING_SECONDS=120 # for the start, the last evaluation and the last checkpoint
limit='' # of this job in seconds; empty without one

limit_in_seconds() { # LIMIT of `squeue --format=%l`: 30:00, 4:00:00, 1-02:00:00; prints nothing for UNLIMITED etc.
    [[ $1 =~ ^(([0-9]+)-)?(([0-9]+):)?([0-9]+):([0-9]+)$ ]] || return 0
    local days=${BASH_REMATCH[2]:-0} hours=${BASH_REMATCH[4]:-0} minutes=${BASH_REMATCH[5]} seconds=${BASH_REMATCH[6]}
    echo $((((10#$days * 24 + 10#$hours) * 60 + 10#$minutes) * 60 + 10#$seconds)) # 10#: 08 is not octal
}

minutes_of_training() { # LIMIT: one decimal, at least half of a short job; prints nothing without a limit
    local seconds training
    seconds=$(limit_in_seconds "$1")
    [[ $seconds ]] || return 0
    training=$((seconds - SIGNAL_SECONDS - CLOSING_SECONDS))
    ((training >= seconds / 2)) || training=$((seconds / 2))
    echo "$((training / 60)).$((training % 60 / 6))"
}

# A requeued job has the same limit, but `minutes` counts over all starts of a run: they train this long in total.
set_minutes() {
    local text minutes
    unset BUSSO_MINUTES # of the job from which this one was submitted
    text=$(ask squeue --noheader --jobs="$BUSSO_JOB" --format=%l)
    limit=$(limit_in_seconds "$text") minutes=$(minutes_of_training "$text")
    [[ $minutes ]] || { say "no time limit (${text:-squeue shows none}): the run has the budget of its settings"; return; }
    export BUSSO_MINUTES=$minutes
    say "time limit $text: $minutes minutes of training, unless the settings name minutes or episodes"
}

# Print the seconds for which a short job may train on after USR1, which Slurm sends in its first half or even at its
# start; fail for other jobs and after a preemption.
seconds_to_hold() { # SECONDS since the start
    local record seconds=$((limit - CLOSING_SECONDS - $1))
    ((limit < 2 * (SIGNAL_SECONDS + EARLY_SECONDS) && seconds > 0)) && record=$(record_of_job || { sleep 3 && record_of_job; }) &&
        [[ $record == *' PreemptTime=None '* ]] && echo "$seconds"
}
