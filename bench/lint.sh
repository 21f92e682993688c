#!/usr/bin/env bash
# How fast `dualplane lint` is beside kubeconform, and how much memory both take: 50,000 manifests from a seed, a third of
# them model servers, in files of 500.
#   bench/lint.sh [MANIFESTS] [SEED]
# DUALPLANE: the program (target/release/dualplane). KUBECONFORM and SCHEMAS: the anchor and its schemas, which
# `e2e/helm lint` builds and keeps below ~/.cache/dualplane/e2e. Needs python3 and /usr/bin/time.
# KUBESCORE and CHECKOV: programs that are measured beside them, once each. kube-score builds from its Go module; checkov is on
# PyPI and takes so long that it gets CHECKOV_PART of the files (default 2 of 100) and its time is told for those alone.
set -euo pipefail
cd "$(dirname "$0")/.."

count=${1:-50000} seed=${2:-1}
cache=${E2E_CACHE:-$HOME/.cache/dualplane/e2e}
# shellcheck disable=SC2012,SC2086
newest() { ls -td "$cache"/$1 2>/dev/null | sed -n 1p; }
dualplane=${DUALPLANE:-target/release/dualplane}
kubeconform=${KUBECONFORM:-$(newest 'helm-*/kubeconform')}
schemas=${SCHEMAS:-$(newest 'schemas-*')}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 - "$work/in" "$count" "$seed" <<'PY'
import os, random, sys
out, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
os.makedirs(out)
models = ["Qwen/Qwen3-8B", "Qwen/Qwen3-14B", "meta-llama/Llama-3.1-8B-Instruct", "example/own-model"]
cards = ["NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L4"]
def meta(kind, i): return f"metadata:\n  name: {kind}-{i}\n  namespace: team-{i % 40}\n  labels:\n    app.kubernetes.io/name: {kind}\n    app: {kind}-{i}\n"
def deployment(i, server):
    image = f"vllm/vllm-openai:v0.{random.choice([10, 11])}.{random.choice([0, 2])}" if server else f"registry.example/app:{random.randint(1, 99)}"
    args = f"        args:\n        - --model={random.choice(models)}\n        - --max-model-len={random.choice([4096, 8192, 16384])}\n        - --gpu-memory-utilization={random.choice(['0.9', '0.92', '0.95'])}\n" if server else "        args: [serve, --port, \"8080\"]\n"
    gpu = "            nvidia.com/gpu: \"1\"\n" if server else ""
    node = f"      nodeSelector:\n        nvidia.com/gpu.product: {random.choice(cards)}\n" if server else ""
    memory = random.choice([8, 16, 32, 64])
    env = "".join(f"        - name: SETTING_{k}\n          value: \"{random.randint(0, 999)}\"\n" for k in range(8))
    return f"apiVersion: apps/v1\nkind: Deployment\n{meta('server', i)}spec:\n  replicas: {random.randint(1, 4)}\n  selector:\n    matchLabels:\n      app: server-{i}\n  template:\n    metadata:\n      labels:\n        app: server-{i}\n    spec:\n{node}      containers:\n      - name: main\n        image: {image}\n{args}        env:\n{env}        ports:\n        - containerPort: 8000\n          name: http\n        readinessProbe:\n          httpGet:\n            path: /health\n            port: 8000\n        resources:\n          requests:\n            cpu: \"4\"\n            memory: {memory}Gi\n          limits:\n            memory: {memory}Gi\n{gpu}        volumeMounts:\n        - name: shm\n          mountPath: /dev/shm\n      volumes:\n      - name: shm\n        emptyDir:\n          medium: Memory\n          sizeLimit: 2Gi\n"
def service(i): return f"apiVersion: v1\nkind: Service\n{meta('server', i)}spec:\n  selector:\n    app: server-{i}\n  ports:\n  - name: http\n    port: 80\n    targetPort: 8000\n"
def config(i): return f"apiVersion: v1\nkind: ConfigMap\n{meta('config', i)}data:\n" + "".join(f"  key-{k}: \"value of {random.randint(0, 9999)}\"\n" for k in range(12))
def one(i):
    k = i % 6
    return deployment(i, k < 2) if k < 3 else service(i) if k < 5 else config(i)
for f in range(0, count, 500):
    with open(f"{out}/{f:06}.yaml", "w") as file:
        for i in range(f, min(f + 500, count)):
            file.write("---\n" + one(i))
PY

# Seconds, seconds of processors, and KiB of the best of three runs: the one that took the least of processors, because others
# may work on the machine.
best() {
    local i
    for i in 1 2 3; do measured "$@"; done | sort -n -k 2 | head -1
}
measured() {
    /usr/bin/time -f '%e %U %S %M' -o "$work/time" "$@" >"$work/said" 2>&1 || true
    tail -1 "$work/time" | awk '{ print $1, $2 + $3, $4 }'
}
read -r ours ours_cpu ours_kib < <(best "$dualplane" lint "$work/in")
tail -3 "$work/said"
read -r theirs theirs_cpu theirs_kib < <(best "$kubeconform" -summary -schema-location "$schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json" "$work/in")
tail -1 "$work/said"
# Once, for programs that take minutes.
if [ -n "${KUBESCORE:-}" ]; then
    read -r seconds cpu kib < <(measured "$KUBESCORE" score -o ci "$work"/in/*.yaml)
    printf 'kube-score: %s s, %s s of processors, %d MiB, %d lines\n' "$seconds" "$cpu" $((kib / 1024)) "$(wc -l <"$work/said")"
fi
if [ -n "${CHECKOV:-}" ]; then
    part=${CHECKOV_PART:-2}
    mkdir "$work/part"
    find "$work/in" -name '*.yaml' | sort | head -"$part" | xargs cp -t "$work/part"
    read -r seconds cpu kib < <(measured "$CHECKOV" --framework kubernetes --compact --quiet --skip-download -d "$work/part")
    printf 'checkov: %s s, %s s of processors, %d MiB for %d manifests' "$seconds" "$cpu" $((kib / 1024)) $((part * 500))
    read -r seconds cpu _ < <(best "$dualplane" lint "$work/part")
    printf '; dualplane lint on the same: %s s, %s s of processors\n' "$seconds" "$cpu"
fi
awk -v o="$ours" -v oc="$ours_cpu" -v om="$ours_kib" -v t="$theirs" -v tc="$theirs_cpu" -v tm="$theirs_kib" -v n="$count" 'BEGIN {
    printf "%d manifests: dualplane lint %.2f s, %.2f s of processors, %.1f MiB; kubeconform %.2f s, %.2f s, %.1f MiB; ratio of time %.2f, of processors %.2f\n",
        n, o, oc, om / 1024, t, tc, tm / 1024, o / t, oc / tc
}'
