# Where things are, and what every part of e2e/run needs.
# shellcheck shell=bash disable=SC2034

E2E=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# All state of a running cluster: certificates, etcd, containerd's store, logs, pids.
STATE=${E2E_DIR:-/tmp/dualplane-e2e}
# What was built and unpacked, by the hash of what it was made of.
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/dualplane/e2e

NODE=gpu-node-1
# A bridge of our own carries the node's address: the API server refuses to proxy to loopback, and
# nothing listens on an address that other machines can reach.
BRIDGE=dualplane0
NODE_IP=10.244.0.1
POD_CIDR=10.244.0.0/24
# The API server listens on its own service address, so pods reach it without a kube-proxy.
SERVICE_IP=10.96.0.1
SERVICE_CIDR=10.96.0.0/16
API=https://$SERVICE_IP:443
FAULTS_PORT=6444
PROMETHEUS_PORT=9090

say() { printf '%6ss %s\n' "$SECONDS" "$*" >&2; }
die() { echo "${ME:-e2e/run}: $*" >&2; exit 1; }
# 77 is what test runners take for "skipped".
cannot() { echo "${ME:-e2e/run}: cannot run here: $*" >&2; exit 77; }

hash_of() { cat "$@" | sha256sum | cut -c1-12; }

# Folders of the cache. A function each, since sources may change between two calls.
kube_module() { echo "$E2E/tools/kube${E2E_KUBERNETES:+-$E2E_KUBERNETES}"; }
kube_dir() { echo "$CACHE/kube-$(hash_of "$(kube_module)"/go.* "$E2E"/tools/etcd/go.*)"; }
tools_dir() {
    local files
    mapfile -t files < <(find "$E2E/tools/cmd" -name '*.go' | sort)
    echo "$CACHE/tools-$(hash_of "$E2E"/tools/go.* "${files[@]}")"
}
debian_dir() { echo "$CACHE/debian-$(hash_of "$E2E/lib/packages" /etc/debian_version)"; }
ksm_dir() { echo "$CACHE/kube-state-metrics-$(hash_of "$E2E"/tools/kube-state-metrics/go.*)"; }
crds_dir() { echo "$CACHE/crds-$(hash_of "$E2E"/tools/keda/go.*)"; }

images_dir() { echo "$CACHE/images-$(hash_of "$E2E/victim/victim.c" "$E2E/lib/images.sh" "$E2E/lib/packages")"; }

# $1: folder of a module, $2: module that it requires.
module_version() { (cd "$1" && go list -m -f '{{.Version}}' "$2"); }
# The same, unpacked; the sums are in the folder's go.sum.
module_dir() { (cd "$1" && go mod download -json "$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'); }

# $1: seconds, $2: what for, then a command that is tried until it succeeds.
until_true() {
    local seconds=$1 what=$2 deadline
    shift 2
    deadline=$((SECONDS + seconds))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] || { echo "e2e/run: no $what within $seconds s" >&2; return 1; }
        sleep 0.2
    done
}

kc() { "$(kube_dir)/kubectl" --kubeconfig "$STATE/admin.kubeconfig" "$@"; }
