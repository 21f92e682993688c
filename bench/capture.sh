#!/usr/bin/env bash
# Wall time of `dualplane capture` against what people type one after another: kubectl describe, logs --previous,
# get events, get -o yaml. In turns, in one run, against the cluster of $KUBECONFIG.
# Usage: bench/capture.sh POD NAMESPACE [TURNS=10]
set -euo pipefail
cd "$(dirname "$0")/.."
pod=$1 namespace=$2 turns=${3:-10}
bin=${DUALPLANE:-$PWD/target/release/dualplane}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

seconds() { # command…: wall seconds, then peak KiB of the largest process
  python3 - "$@" <<'PY'
import resource, subprocess, sys, time
start = time.monotonic()
subprocess.run(sys.argv[1:], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(f"{time.monotonic() - start:.3f} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}")
PY
}
by_hand() {
  echo "kubectl describe pod $pod -n $namespace > $dir/describe
kubectl logs $pod -n $namespace --previous --all-containers > $dir/previous.log
kubectl get events -n $namespace > $dir/events
kubectl get pod $pod -n $namespace -o yaml > $dir/pod.yaml"
}
printf '%-6s %12s %12s %8s %14s\n' turn 'by hand s' 'capture s' ratio 'capture MiB'
for ((i = 1; i <= turns; i++)); do
  read -r hand _ < <(seconds bash -c "$(by_hand)")
  read -r own peak < <(seconds "$bin" capture "pod/$pod" -n "$namespace" --out "$dir/bundle.tar.zst")
  printf '%-6s %12s %12s %8s %14s\n' "$i" "$hand" "$own" \
    "$(awk -v a="$own" -v b="$hand" 'BEGIN { printf "%.2fx", a / b }')" "$(awk -v k="$peak" 'BEGIN { printf "%.1f", k / 1024 }')"
done
