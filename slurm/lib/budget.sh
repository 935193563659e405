# shellcheck shell=bash
# How long a job may train: its time limit, less what is needed to end before it.
SIGNAL_SECONDS=300 # before the limit comes USR1, by the line `#SBATCH --signal=B:USR1@300` of train_dqn.sh and sweep.sh
CLOSING_SECONDS=120 # to start, and for the last evaluation and checkpoint

limit_in_seconds() { # LIMIT, as `squeue --format=%l` says it: 30:00, 4:00:00, 1-02:00:00; nothing for UNLIMITED and the like
    [[ $1 =~ ^(([0-9]+)-)?(([0-9]+):)?([0-9]+):([0-9]+)$ ]] || return 0
    local days=${BASH_REMATCH[2]:-0} hours=${BASH_REMATCH[4]:-0} minutes=${BASH_REMATCH[5]} seconds=${BASH_REMATCH[6]}
    echo $((((10#$days * 24 + 10#$hours) * 60 + 10#$minutes) * 60 + 10#$seconds)) # 10#: 08 is no octal number
}

minutes_of_training() { # LIMIT: with tenths, at least half of a short job; nothing where there is no limit
    local limit training
    limit=$(limit_in_seconds "$1")
    [[ $limit ]] || return 0
    training=$((limit - SIGNAL_SECONDS - CLOSING_SECONDS))
    ((training >= limit / 2)) || training=$((limit / 2))
    echo "$((training / 60)).$((training % 60 / 6))"
}

# A requeued job has the same limit, and the minutes of a run count over all its starts: together they train so long.
set_minutes() {
    local limit minutes
    unset BUSSO_MINUTES # of another job, from which this one was submitted
    limit=$(squeue --noheader --jobs="$BUSSO_JOB" --format=%l)
    minutes=$(minutes_of_training "$limit")
    [[ $minutes ]] || { say "no time limit to go by (${limit:-squeue says none}): the run has the budget of its settings"; return; }
    export BUSSO_MINUTES=$minutes
    say "time limit $limit: $minutes minutes of training, unless the settings name minutes or episodes"
}
