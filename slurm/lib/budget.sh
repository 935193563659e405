# shellcheck shell=bash
# Training time of a job: its time limit less the time to stop before it.
SIGNAL_SECONDS=300 # USR1 comes this long before the limit: `#SBATCH --signal=B:USR1@300` in train_dqn.sh, sweep.sh and tune.sh
CLOSING_SECONDS=120 # for the start, the last evaluation and the last checkpoint

limit_in_seconds() { # LIMIT of `squeue --format=%l`: 30:00, 4:00:00, 1-02:00:00; prints nothing for UNLIMITED etc.
    [[ $1 =~ ^(([0-9]+)-)?(([0-9]+):)?([0-9]+):([0-9]+)$ ]] || return 0
    local days=${BASH_REMATCH[2]:-0} hours=${BASH_REMATCH[4]:-0} minutes=${BASH_REMATCH[5]} seconds=${BASH_REMATCH[6]}
    echo $((((10#$days * 24 + 10#$hours) * 60 + 10#$minutes) * 60 + 10#$seconds)) # 10#: 08 is not octal
}

minutes_of_training() { # LIMIT: one decimal, at least half of a short job; prints nothing without a limit
    local limit training
    limit=$(limit_in_seconds "$1")
    [[ $limit ]] || return 0
    training=$((limit - SIGNAL_SECONDS - CLOSING_SECONDS))
    ((training >= limit / 2)) || training=$((limit / 2))
    echo "$((training / 60)).$((training % 60 / 6))"
}

# A requeued job has the same limit, but `minutes` counts over all starts of a run: they train this long in total.
set_minutes() {
    local limit minutes
    unset BUSSO_MINUTES # of the job from which this one was submitted
    limit=$(ask squeue --noheader --jobs="$BUSSO_JOB" --format=%l)
    minutes=$(minutes_of_training "$limit")
    [[ $minutes ]] || { say "no time limit (${limit:-squeue shows none}): the run has the budget of its settings"; return; }
    export BUSSO_MINUTES=$minutes
    say "time limit $limit: $minutes minutes of training, unless the settings name minutes or episodes"
}
