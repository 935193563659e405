# shellcheck shell=bash
# Ray on the nodes of a job. On one node the trainer starts Ray; on several the head runs here, on the first node, and
# every other node has its own step. `ray symmetric-run` and `ray stop` would affect the user's other jobs on a node.
# shellcheck disable=SC2154 # tmp and python are set in job.sh
HEAD_SECONDS=300 # a slow disk may take minutes to read Ray for the first time
NODE_TRIES=20 # consecutive attempts to start Ray on a node, over more than an hour with pauses of 10 s to 5 minutes
ray_head='' ray_keepers=() ray_nodes=()

ray_log() { echo "slurm/logs/ray-$SLURM_JOB_ID-$1.log"; } # NODE

start_ray() {
    # A token of this job: no other user on these nodes can join, and no file in $HOME configures authentication.
    RAY_AUTH_TOKEN=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
    export RAY_AUTH_MODE=token RAY_AUTH_TOKEN
    ((SLURM_JOB_NUM_NODES > 1)) || return 0
    local k cpus
    export BUSSO_TMP_OF_JOB=$tmp BUSSO_PYTHON="${python[*]}"
    mapfile -t ray_nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
    mapfile -t cpus < <(cpus_of_nodes)
    slurm/lib/ray-node head "${cpus[0]}" </dev/null >"$(ray_log "${ray_nodes[0]}")" 2>&1 &
    ray_head=$!
    wait_for_head || return 1
    for ((k = 1; k < ${#ray_nodes[@]}; k++)); do
        : >"$(ray_log "${ray_nodes[k]}")"
        keep_node "${ray_nodes[k]}" "${cpus[k]}" &
        ray_keepers+=($!)
    done
}

cpus_of_nodes() { # of the job, one line per node: "4(x2),2" gives 4 4 2
    local group times
    for group in ${SLURM_JOB_CPUS_PER_NODE//,/ }; do
        times=1
        [[ $group =~ \(x([0-9]+)\) ]] && times=${BASH_REMATCH[1]}
        while ((times-- > 0)); do echo "${group%%(*}"; done
    done
}

wait_for_head() { # sets RAY_ADDRESS
    local log deadline=$((SECONDS + HEAD_SECONDS))
    log=$(ray_log "${ray_nodes[0]}")
    while [[ ! -s $tmp/ray/ray_current_cluster ]]; do
        if ! kill -0 "$ray_head" 2>/dev/null || ((SECONDS > deadline)); then
            printf 'error: Ray did not start on %s, see %s:\n' "${ray_nodes[0]}" "$log" >&2
            tail -n 5 "$log" >&2
            return 1
        fi
        sleep 0.2
    done
    RAY_ADDRESS=$(<"$tmp/ray/ray_current_cluster")
    export RAY_ADDRESS
}

# Keep Ray running on a node while the job trains. If it ends (killed, out of memory, node failure) it is restarted;
# training continues without it until then. A node that never comes back is given up.
keep_node() { # NODE CPUS; run in the background
    local step='' stop='' log joined=0 before tries=0 pause=10
    log=$(ray_log "$1")
    trap 'stop=1; [[ $step ]] && kill -USR1 "$step" 2>/dev/null' USR1
    trap '' TERM # from scancel: the trainer ends first
    trap - EXIT
    until [[ $stop ]]; do
        srun --overlap --export=ALL --no-kill --nodes=1 --ntasks=1 --nodelist="$1" --cpus-per-task="$2" --cpu-bind=none \
            --kill-on-bad-exit=0 slurm/lib/ray-node "$RAY_ADDRESS" "$2" </dev/null >>"$log" 2>&1 &
        step=$!
        while wait "$step"; kill -0 "$step" 2>/dev/null; do :; done
        step='' before=$joined
        joined=$(grep -c 'Ray runtime started' "$log")
        [[ $stop ]] && return
        if ((joined > before)); then
            say "Ray on $1 ended, see $log; restarting it"
            tries=0 pause=10
        fi
        if ((joined == before && ++tries == NODE_TRIES)); then
            say "Ray did not start on $1 $tries times in a row, see $log; the job continues without this node"
            sleep infinity & # until USR1, so that this process id is not reused
            step=$!
            wait "$step"
            return 0
        fi
        sleep "$pause" &
        wait $!
        pause=$((pause < 150 ? 2 * pause : 300))
    done
}

stop_ray() { # on every node, each of which removes its temporary folder
    [[ $ray_head ]] || return 0
    local pid deadline=$((SECONDS + 12)) # of all together: Slurm ends the job soon, and it is to be requeued first
    kill -USR1 "$ray_head" "${ray_keepers[@]}" 2>/dev/null
    for pid in "$ray_head" "${ray_keepers[@]}"; do
        timeout_wait "$pid" "$deadline" || kill -KILL "$pid" 2>/dev/null
    done
    ray_head=''
}

timeout_wait() { # PID DEADLINE
    while kill -0 "$1" 2>/dev/null; do
        ((SECONDS < $2)) || return 1
        sleep 0.1
    done
}

name_missing_nodes() { # after the trainer reported that not all nodes joined
    local node log
    for node in "${ray_nodes[@]}"; do
        log=$(ray_log "$node")
        grep -q 'Ray runtime started' "$log" 2>/dev/null && continue
        printf 'error: node %s did not join Ray, see %s:\n' "$node" "$log" >&2
        tail -n 3 "$log" >&2
    done
}
