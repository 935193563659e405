# shellcheck shell=bash
# The learners of a job with learner.replicas=K on several nodes: the first node's are the trainer's own, every other node
# has a step of its own. Each replica plays on its own node, so no Ray joins the nodes.
# shellcheck disable=SC2154 # tmp and python are set in job.sh
# shellcheck source=slurm/lib/node.sh
source slurm/lib/node.sh
replica_steps=()

replica_log() { echo "slurm/logs/replica-$SLURM_JOB_ID-$1.log"; } # NODE

has_replicas() { # OVERRIDES...: whether they say learner.replicas=K with K > 1
    local each replicas=1
    for each in "$@"; do [[ $each == learner.replicas=* ]] && replicas=${each#*=}; done
    [[ $replicas != 1 ]]
}

start_replicas() { # OVERRIDES...
    local k nodes
    mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
    # The names of torchrun's variables; train/dqn/replicas/launch.py reads them.
    export GROUP_RANK=0 GROUP_WORLD_SIZE=${#nodes[@]} BUSSO_TMP_OF_JOB=$tmp BUSSO_PYTHON="${python[*]}"
    MASTER_ADDR=$(address_of_node) && [[ $MASTER_ADDR ]] || return 1
    MASTER_PORT=$("${python[@]}" -c 'import socket; print(socket.create_server(("", 0)).getsockname()[1])') || return 1
    export MASTER_ADDR MASTER_PORT
    if [[ ${BUSSO_INTERFACE:-} ]]; then export GLOO_SOCKET_IFNAME=$BUSSO_INTERFACE NCCL_SOCKET_IFNAME=$BUSSO_INTERFACE; fi
    for ((k = 1; k < ${#nodes[@]}; k++)); do
        GROUP_RANK=$k replica_step "${nodes[k]}" "$@" &
        replica_steps+=($!)
    done
}

# Slurm (22.05) may refuse all steps of a job that starts in the moment in which a lost node comes back ("Invalid generic
# resource"): it has lost the GPUs of the allocation. After some tries the job goes back into the queue for a new one.
replica_step() { # NODE OVERRIDES...
    local tries log node=$1
    shift
    log=$(replica_log "$node")
    for ((tries = 0; tries < 5; tries++)); do
        srun --overlap --export=ALL --no-kill --nodes=1 --ntasks=1 --nodelist="$node" \
            --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --cpu-bind=none --kill-on-bad-exit=0 \
            slurm/lib/replica-node "$@" </dev/null >"$log" 2>&1
        grep -q 'Unable to create step' "$log" || return
        sleep 3
    done
    say "Slurm makes no step on $node, see $log"
    kill -USR1 $$ # the job's: a checkpoint, and back into the queue
}

stop_replicas() { # they end with the trainer; what does not is killed
    local pid
    for pid in "${replica_steps[@]}"; do
        timeout_wait "$pid" 12 || { pkill -KILL -P "$pid"; kill -KILL "$pid"; } 2>/dev/null
    done
    replica_steps=()
}
