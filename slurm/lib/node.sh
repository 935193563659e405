# shellcheck shell=bash
# Nodes of a job: their addresses, and requeueing the job when the first node fails.

address_of_node() {
    local address=
    if [[ ${BUSSO_INTERFACE:-} ]]; then
        address=$(PATH=$PATH:/usr/sbin:/sbin ip -o -4 addr show dev "$BUSSO_INTERFACE" | awk '{sub("/.*", "", $4); print $4; exit}')
        [[ $address ]] || echo "error: BUSSO_INTERFACE: $(hostname) has no address at $BUSSO_INTERFACE" >&2
    else
        address=$(getent ahostsv4 "${SLURMD_NODENAME:-$(hostname)}" | awk '{print $1; exit}')
        [[ $address && $address != 127.* ]] || address=$(hostname -I | awk '{print $1}')
        [[ $address ]] || echo "error: no IPv4 address for $(hostname); set BUSSO_INTERFACE in slurm/site.env" >&2
    fi
    echo "$address"
}

answers() { # ADDRESS:PORT
    timeout 5 bash -c "exec 3<>/dev/tcp/${1%:*}/${1##*:}" 2>/dev/null
}

# The batch shell dies with the first node, and nothing else requeues the job. Slurm needs a while to notice.
# Returns early once $stop is "told".
requeue_without_first_node() {
    local first
    first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
    for _ in {1..60}; do
        if [[ $(scontrol --oneliner show node "$first") == *State=*DOWN* ]]; then
            echo "$first is down: job $BUSSO_JOB goes back into the queue"
            scontrol requeue "$BUSSO_JOB"
            return
        fi
        sleep 10 &
        wait $!
        [[ ${stop:-} == told ]] && return
    done
}
