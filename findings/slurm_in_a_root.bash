# shellcheck shell=bash
# Sourced by findings about Slurm: `in_slurm slurm==VERSION` runs its standard input as a script on a Slurm of one node.
#
# Slurm is that of Debian 12 (bookworm), in a temporary root and in namespaces of its own: no daemon, mount or network of
# the machine is touched, and nothing stays. Needs root, debootstrap, access to Debian's archive, and the memory
# controller of cgroup v1 at /sys/fs/cgroup/memory.
set -euo pipefail
node=finding$$ root=$(mktemp -d)
chmod 755 "$root" # for users of the packages
remove_root() {
    find /sys/fs/cgroup/*/"slurm_$node" /sys/fs/cgroup/*/slurm/"$node" -depth -type d -exec rmdir {} + 2>/dev/null || true
    rm -rf --one-file-system "$root"
}
trap remove_root EXIT

in_slurm() { # slurm==VERSION
    local version=${1#*==}
    [[ $(id -u) == 0 ]] || { echo 'this needs root' >&2; exit 2; }
    if ! {
        debootstrap --variant=minbase bookworm "$root" &&
            printf '%s\n' '#!/bin/sh' 'exit 101' >"$root/usr/sbin/policy-rc.d" && chmod +x "$root/usr/sbin/policy-rc.d" &&
            DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -qq install --no-install-recommends \
                slurm{ctld,d,-client}="$version-*" munge iproute2 python3-minimal
    } >"$root/log" 2>&1; then
        tail "$root/log" >&2
        exit 2
    fi
    mkdir -p "$root"/{old,spool,state,jobs,etc/slurm}
    cat >"$root/finding.sh"
    printf "%b\n" "127.0.0.1 localhost\n10.77.0.1 $node" >"$root/etc/hosts"
    printf '%s\n' CgroupPlugin=cgroup/v1 ConstrainRAMSpace=yes >"$root/etc/slurm/cgroup.conf"
    cat >"$root/etc/slurm/slurm.conf" <<CONF
ClusterName=finding
SlurmctldHost=$node(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=/run/munge.sock
StateSaveLocation=/state
SlurmdSpoolDir=/spool
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
KillWait=5
NodeName=$node NodeAddr=10.77.0.1 CPUs=8 RealMemory=2000
PartitionName=all Nodes=ALL Default=YES
CONF
    timeout --foreground 600 unshare --mount --pid --ipc --uts --net --fork --kill-child bash -euc '
        hostname "$1"
        mount --rbind "$2" "$2" && cd "$2"
        mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev
        mount -t tmpfs shm dev/shm && mount -t tmpfs run run
        pivot_root . old && umount -l /old && cd /jobs
        ip link set lo up && ip addr add 10.77.0.1/32 dev lo # not 127.0.0.1 alone: getaddrinfo would find none
        head -c 128 /dev/urandom >/run/key && chmod 600 /run/key
        munged --key-file=/run/key --socket=/run/munge.sock --pid-file=/run/munged.pid --seed-file=/run/seed --log-file=/run/munged.log
        slurmctld -c -i && slurmd -N "$1"
        for _ in {1..100}; do [[ $(timeout 5 sinfo -h -o %T) != idle ]] || break; sleep 0.2; done
        bash -eu /finding.sh' in_slurm "$node" "$root"
}
