# Takes everything away again: what down leaves behind is a bug.
# shellcheck shell=bash

# A zombie has ended, whenever its parent takes notice.
ended() { ! grep -qs '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status"; }

# $1: name, $2: signal
stop() {
    local name=$1 pid
    if pid=$(pid_of "$name"); then
        # The whole session: kernel-log is a pipeline.
        kill "${2:--TERM}" -- "-$pid" 2>/dev/null
        for _ in {1..50}; do ended "$pid" && break; sleep 0.1; done
        kill -KILL -- "-$pid" 2>/dev/null
    fi
    rm -f "$STATE/pid/$name"
}

# Pods' groups: first what runs in them, then the groups from the innermost outwards.
remove_cgroups() {
    local root pids
    for _ in 1 2 3; do
        pids=$(find /sys/fs/cgroup -path '*/kubepods/*' -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u)
        [ -n "$pids" ] || break
        # shellcheck disable=SC2086
        kill -KILL $pids 2>/dev/null
        sleep 0.3
    done
    for root in /sys/fs/cgroup/kubepods /sys/fs/cgroup/*/kubepods; do
        [ ! -d "$root" ] || find "$root" -depth -type d -exec rmdir {} + 2>/dev/null
    done
}

# containerd's shims outlive it on purpose. Ours carry our socket in their command line.
stop_shims() {
    local file
    for file in /proc/[0-9]*/cmdline; do
        if { tr '\0' ' ' <"$file"; } 2>/dev/null | grep "^[^ ]*containerd-shim-runc-v2 .*$STATE/run/containerd.sock" >/dev/null; then
            kill -KILL "$(basename "$(dirname "$file")")" 2>/dev/null
        fi
    done
}

# The folder itself too: the kubelet mounts its own onto itself, to share what is below.
unmount_below() {
    local point
    # The latest first: what is mounted within another goes before it.
    awk -v dir="$1" '$2 == dir || index($2, dir "/") == 1 {print $2}' /proc/self/mounts | tac | while read -r point; do
        umount -l "$point" 2>/dev/null
    done
}

down() {
    [ -d "$STATE/pid" ] || { say "nothing is up"; return 0; }
    [ "$(id -u)" = 0 ] || cannot "not root"
    local name netns
    for name in second fleet faults gpuplugin prometheus kernel-log; do stop $name; done
    # No grace for these: their state is thrown away.
    for name in kubelet kube-scheduler kube-controller-manager kube-apiserver etcd; do stop $name -KILL; done
    remove_cgroups
    stop containerd
    stop_shims
    remove_cgroups
    unmount_below /var/lib/kubelet
    unmount_below "$STATE"
    for netns in /run/netns/cni-*; do
        [ -e "$netns" ] || continue
        grep -qxF "$(basename "$netns")" "$STATE/netns.before" 2>/dev/null || ip netns del "$(basename "$netns")"
    done
    ip link del $BRIDGE 2>/dev/null
    [ ! -e "$STATE/kern.log.ours" ] || rm -f /var/log/kern.log
    # A mount that is left would be emptied by what follows.
    ! grep -qE " (/var/lib/kubelet|$STATE)[/ ]" /proc/self/mounts || die "mounts are left below /var/lib/kubelet or $STATE"
    rm -rf /var/lib/kubelet /var/log/pods /var/log/containers "$STATE"
    say "down"
}
