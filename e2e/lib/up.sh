# Brings the cluster up: every process in the background, its log and its pid in $STATE.
# shellcheck shell=bash

# $1: pid. When it began, in ticks: after a restart of the machine another process may have its number.
began() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# $1: name. Its pid, where it is still that process.
pid_of() {
    local pid ticks
    read -r pid ticks 2>/dev/null <"$STATE/pid/$1" && [ -n "$ticks" ] && [ "$(began "$pid")" = "$ticks" ] && echo "$pid"
}

alive() {
    local pid
    pid=$(pid_of "$1") && ! ended "$pid"
}

# What an earlier run left: of another Kubernetes, or its store no longer runs. Its objects are not what this one would make.
left_over() { [ -d "$STATE/pid" ] && { [ "$(cat "$STATE/of" 2>/dev/null)" != "$(kube_dir)" ] || ! alive etcd; }; }

# $1: name, then the command. A session of its own, so that Ctrl-C of the tests does not reach it.
background() {
    local name=$1
    shift
    alive "$name" && return
    setsid nohup "$@" >>"$STATE/log/$name.log" 2>&1 </dev/null &
    echo "$! $(began $!)" >"$STATE/pid/$name"
    disown
}

can_run() {
    [ "$(id -u)" = 0 ] || cannot "not root"
    [ -d /sys/fs/cgroup/memory/ ] || grep -qw memory /sys/fs/cgroup/cgroup.controllers 2>/dev/null \
        || cannot "no memory controller below /sys/fs/cgroup"
    local probe=/sys/fs/cgroup/dualplane-e2e-probe
    [ -d /sys/fs/cgroup/memory ] && probe=/sys/fs/cgroup/memory/dualplane-e2e-probe
    { mkdir -p $probe && rmdir $probe; } 2>/dev/null || cannot "cgroups cannot be made below /sys/fs/cgroup"
    [ -e "$STATE/pid/kubelet" ] && return
    # Their state would be mixed with ours, and removed with it.
    [ ! -e /var/lib/kubelet ] || [ -z "$(ls -A /var/lib/kubelet)" ] \
        || cannot "/var/lib/kubelet is in use: this machine is a node already"
    ip link add $BRIDGE type bridge 2>/dev/null || ip link show $BRIDGE >/dev/null 2>&1 \
        || cannot "no network bridge can be made"
}

network() {
    ip link show $BRIDGE >/dev/null 2>&1 || ip link add $BRIDGE type bridge
    ip addr replace $NODE_IP/24 dev $BRIDGE
    ip addr replace $SERVICE_IP/32 dev $BRIDGE
    ip link set $BRIDGE up
    mkdir -p "$STATE/cni"
    cat >"$STATE/cni/10-e2e.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "e2e", "plugins": [
 {"type": "bridge", "bridge": "$BRIDGE", "isGateway": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "$POD_CIDR"}]], "routes": [{"dst": "0.0.0.0/0"}],
           "dataDir": "$STATE/ipam"}}]}
JSON
}

start_containerd() {
    local debian
    debian=$(debian_dir)
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE a score below the own one is refused.
    cat >"$STATE/containerd.toml" <<TOML
version = 2
root = "$STATE/containerd"
state = "$STATE/run/containerd"
[grpc]
  address = "$STATE/run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.local/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  # runc 1.1 knows one hugepage controller only by name, and many machines have none.
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$debian/usr/lib/cni"
    conf_dir = "$STATE/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "$debian/usr/sbin/runc"
      SystemdCgroup = false
TOML
    local library
    library=$(dirname "$(find "$debian" -name 'libseccomp.so.2' | head -1)")
    background containerd env PATH="$debian/usr/bin:$debian/usr/sbin:$PATH" LD_LIBRARY_PATH="$library" \
        "$debian/usr/bin/containerd" --config "$STATE/containerd.toml"
}

ctr() { "$(debian_dir)/usr/bin/ctr" --address "$STATE/run/containerd.sock" -n k8s.io "$@"; }

import_images() {
    until_true 20 "containerd" ctr version || return
    local image
    for image in "$(images_dir)"/*.tar; do ctr images import "$image" >/dev/null || return; done
}

start_control_plane() {
    local bin pki=$STATE/pki
    bin=$(kube_dir)
    background etcd "$bin/etcd" --data-dir "$STATE/etcd" --unsafe-no-fsync --log-level warn \
        --quota-backend-bytes $((4 << 30)) \
        --listen-client-urls http://127.0.0.1:23790 --advertise-client-urls http://127.0.0.1:23790 \
        --listen-peer-urls http://127.0.0.1:23800
    # The tests see what a stock cluster's clients see: its own limits of requests in flight stay.
    background kube-apiserver "$bin/kube-apiserver" \
        --etcd-servers http://127.0.0.1:23790 --bind-address $SERVICE_IP --secure-port 443 \
        --advertise-address $SERVICE_IP --endpoint-reconciler-type none \
        --service-cluster-ip-range $SERVICE_CIDR --authorization-mode Node,RBAC --allow-privileged \
        --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
        --client-ca-file "$pki/ca.crt" --cert-dir "$STATE/pki" \
        --service-account-issuer https://kubernetes.default.svc \
        --service-account-key-file "$pki/service-accounts.pub" \
        --service-account-signing-key-file "$pki/service-accounts.key" \
        --kubelet-client-certificate "$pki/admin.crt" --kubelet-client-key "$pki/admin.key" \
        --kubelet-certificate-authority "$pki/ca.crt" --kubelet-preferred-address-types InternalIP
}

start_controllers() {
    local bin pki=$STATE/pki
    bin=$(kube_dir)
    # Its default of 20 requests a second makes Deployments of the tests wait for the fleet's garbage.
    background kube-controller-manager "$bin/kube-controller-manager" \
        --kubeconfig "$STATE/controller-manager.kubeconfig" --leader-elect=false \
        --use-service-account-credentials --kube-api-qps 200 --kube-api-burst 400 \
        --service-account-private-key-file "$pki/service-accounts.key" --root-ca-file "$pki/ca.crt" \
        --terminated-pod-gc-threshold 0 --bind-address 127.0.0.1 --cert-dir "$STATE/pki/kcm"
    background kube-scheduler "$bin/kube-scheduler" --kubeconfig "$STATE/scheduler.kubeconfig" \
        --leader-elect=false --bind-address 127.0.0.1 --kube-api-qps 200 --kube-api-burst 400 --cert-dir "$STATE/pki/scheduler"
}

start_kubelet() {
    local pki=$STATE/pki
    mkdir -p /var/lib/kubelet "$STATE/static-pods"
    # Its default folders (/var/lib/kubelet, /var/log/pods) are kept: programs on a node look there.
    # ResourceHealthStatus needs no word here: 1.36 has it on, so a pod's status names its devices in
    # containerStatuses[].allocatedResourcesStatus.
    cat >"$STATE/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_IP
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $pki/kubelet-server.crt
tlsPrivateKeyFile: $pki/kubelet-server.key
containerRuntimeEndpoint: unix://$STATE/run/containerd.sock
cgroupDriver: cgroupfs
cgroupsPerQOS: true
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
# With cgroup v2 the kernel would kill a container as a whole; a child that dies alone is a case of its own.
singleProcessOOMKill: true
staticPodPath: $STATE/static-pods
oomScoreAdj: 0
healthzPort: 0
registerNode: true
maxPods: 200
podPidsLimit: 4096
# Evictions by sizeLimit come with these.
volumeStatsAggPeriod: 10s
syncFrequency: 10s
nodeStatusUpdateFrequency: 5s
# A developer's disk is often nearly full, and this node must not care.
evictionHard: {memory.available: 50Mi, nodefs.available: 1Gi, imagefs.available: 1Gi}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionPressureTransitionPeriod: 10s
# A large log must be there in one piece to be read.
containerLogMaxSize: 300Mi
YAML
    background kubelet "$(kube_dir)/kubelet" --kubeconfig "$STATE/kubelet.kubeconfig" \
        --config "$STATE/kubelet.yaml" --hostname-override $NODE --node-ip $NODE_IP \
        --node-labels "$(tr '\n' , <"$E2E/lib/node-labels" | sed 's/,$//')"
}

# As rsyslog writes it: what a person finds below /var/log of a node, and reads through the kubelet.
follow_kernel_log() {
    if [ -e /var/log/kern.log ] && [ ! -e "$STATE/kern.log.ours" ]; then return; fi
    touch "$STATE/kern.log.ours"
    # shellcheck disable=SC2016 # The inner shell expands.
    background kernel-log bash -c 'dmesg --follow-new | while IFS= read -r line; do
        printf "%(%b %e %H:%M:%S)T %s kernel: %s\n" -1 "$0" "$line"; done >>/var/log/kern.log' $NODE
}

node_ready() { [ "$(kc get node $NODE -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
default_account() { kc -n default get serviceaccount default; }

up() {
    ! left_over || down || return
    can_run
    build
    mkdir -p "$STATE"/{pid,log,run}
    kube_dir >"$STATE/of"
    [ -e "$STATE/netns.before" ] || ls /run/netns >"$STATE/netns.before" 2>/dev/null
    [ -e "$STATE/scheduler.kubeconfig" ] || certificates
    network
    say "start"
    start_containerd
    start_control_plane
    import_images || die "containerd takes no images, see $STATE/log/containerd.log"
    until_true 60 "API server" kc get --raw /readyz || die "see $STATE/log/kube-apiserver.log"
    start_controllers
    start_kubelet
    follow_kernel_log
    until_true 60 "Ready node" node_ready || die "see $STATE/log/kubelet.log"
    until_true 30 "default service account" default_account || die "see $STATE/log/kube-controller-manager.log"
    # Too large for an annotation of `apply`.
    kc apply --server-side -f "$(crds_dir)" >/dev/null || die "the API server takes no definitions of KEDA"
    extras
    say "Kubernetes $(kc version -o json | sed -n 's/.*"gitVersion": "\(.*\)".*/\1/p' | tail -1) is up; $E2E/run env"
}

# What the tests use around the cluster. Each is left out where it is not built yet.
extras() {
    [ ! -x "$(tools_dir)/gpuplugin" ] || background gpuplugin "$(tools_dir)/gpuplugin"
    [ ! -x "$(tools_dir)/faults" ] || background faults "$(tools_dir)/faults" \
        --upstream "$API" --listen $NODE_IP:$FAULTS_PORT --ca "$STATE/pki/ca.crt" \
        --cert "$STATE/pki/apiserver.crt" --key "$STATE/pki/apiserver.key" \
        --client-cert "$STATE/pki/admin.crt" --client-key "$STATE/pki/admin.key"
    start_prometheus
}

start_prometheus() {
    cat >"$STATE/prometheus.yml" <<YAML
global: {scrape_interval: 5s}
scrape_configs:
- job_name: cadvisor
  scheme: https
  metrics_path: /metrics/cadvisor
  tls_config: {ca_file: $STATE/pki/ca.crt, cert_file: $STATE/pki/admin.crt, key_file: $STATE/pki/admin.key}
  static_configs: [{targets: ["$NODE_IP:10250"], labels: {node: $NODE}}]
YAML
    background prometheus "$(debian_dir)/usr/bin/prometheus" --config.file "$STATE/prometheus.yml" \
        --storage.tsdb.path "$STATE/prometheus" --web.listen-address $NODE_IP:$PROMETHEUS_PORT
}

fleet_settled() { [ -e "$STATE/fleet.json" ] || ! alive fleet; }

# Thousands of pods on fake nodes. Again with a running one: nothing happens.
fleet() {
    up
    alive fleet || rm -f "$STATE/fleet.json"
    background fleet "$(tools_dir)/fleet" --kubeconfig "$STATE/admin.kubeconfig" --pki "$STATE/pki" --address $NODE_IP \
        --incidents "$E2E/../testdata/incidents" --expect "$STATE/fleet.json" --pods "${E2E_PODS:-5000}"
    until_true 300 "fleet" fleet_settled
    [ -e "$STATE/fleet.json" ] || die "see $STATE/log/fleet.log"
    say "$(tail -n 1 "$STATE/log/fleet.log")"
}
