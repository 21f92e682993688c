# A guard that the chart puts beside a real vLLM on the CPU: it counts both of its memories, and the pod ends without a cut stream.
# And one as a gateway, which finds that pod by its Service.
# shellcheck shell=bash disable=SC2154

GUARDED=guarded

guarded_pod() {
    cat <<YAML
apiVersion: v1
kind: Pod
metadata:
  name: llm
  namespace: $GUARDED
  labels: {dualplane.dev/guard: sidecar, app: llm}
  annotations: {dualplane.dev/guard-tokenizer: /models/tiny/tokenizer.json}
spec:
  hostPID: true
  restartPolicy: Never
  hostname: localhost
  containers:
  - name: vllm
    image: docker.io/vllm/vllm-openai:v0.11.0
    imagePullPolicy: Never
    command: [chroot, /host, /bin/bash, -c]
    args:
    - |
      cd $GUARDED_ENGINE && exec venv/bin/python venv/bin/vllm serve ./tiny --host 127.0.0.1 --port 8000 --max-model-len 4096 --enforce-eager 2>&1
    env:
    - {name: VLLM_CPU_KVCACHE_SPACE, value: "1"}
    - {name: VLLM_HOST_IP, value: 127.0.0.1}
    - {name: GLOO_SOCKET_IFNAME, value: lo}
    - {name: HF_HUB_OFFLINE, value: "1"}
    - {name: PATH, value: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    resources: {limits: {memory: 6Gi}, requests: {memory: 64Mi}}
    volumeMounts: [{name: host, mountPath: /host}, {name: models, mountPath: /models}]
  volumes: [{name: host, hostPath: {path: /}}, {name: models, hostPath: {path: $WORK/models}}]
YAML
}
guarded_service() {
    cat <<YAML
apiVersion: v1
kind: Service
metadata: {name: llm, namespace: $GUARDED}
spec: {selector: {app: llm}, ports: [{name: http, port: 80, targetPort: guard}]}
YAML
}
# Of the server's volumes it has the one with the tokenizer, and cannot write there.
gets_a_guard() {
    local has
    has=$(guarded_pod | kc create --dry-run=server -f - -o json |
        jq -c '.spec.initContainers[0] | [.name, (.volumeMounts[] | select(.name | startswith("kube-api-access") | not) | .name, .mountPath, .readOnly)]') || return
    [ "$has" = '["dualplane-guard","models","/models",true]' ] || { echo "$has"; return 1; }
}
guarded() { kc -n $GUARDED get pod llm -o "jsonpath=$1"; }
guarded_ready() { [ "$(guarded '{.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
# $1: port and path; the rest: options of curl.
gateway_says() { curl -sS -m 60 "${@:2}" "http://$(k get pod -l app.kubernetes.io/component=guard -o 'jsonpath={.items[0].status.podIP}'):$1"; }
guard_says() { curl -sS -m 60 "${@:2}" "http://$(guarded '{.status.podIP}'):$1"; }

# It starts while the rest goes on.
guard_begins() {
    GUARDED_ENGINE=$(engine_dir)
    [ -x "$GUARDED_ENGINE/venv/bin/vllm" ] || { good "no real vLLM is built: no guard beside one"; GUARDED_ENGINE=; return; }
    kc create namespace $GUARDED >/dev/null
    # A user of the guard's reads it.
    install -D -m 644 "$GUARDED_ENGINE/tiny/tokenizer.json" "$WORK/models/tiny/tokenizer.json" && chmod 755 "$WORK/models" "$WORK/models/tiny"
    rolled_out >/dev/null
    # Services lead nowhere here, without a kube-proxy.
    local agent
    agent=$(k get pod -l app.kubernetes.io/component=agent -o 'jsonpath={.items[0].status.podIP}')
    expect "helm upgrade with guards beside servers" chart upgrade --set "guard.sidecar.create=true,guard.sidecar.agent=http://$agent:10980/metrics"
    rolled_out >/dev/null
    expect "a pod with the label gets one" until_true 20 "guard" gets_a_guard
    guarded_service | kc create -f - >/dev/null || bad "its Service"
    guarded_pod | kc create -f - >/dev/null || bad "the guarded pod"
    # Now: later this agent is another pod, and its address another.
    expect "the guard counts its host RAM" until_true 40 "host RAM" counts_host
}

# The pod by its Service's EndpointSlice, with the gateway's own rights; and it is gone when it is.
gateway_has() { gateway_says 10981/status | jq -e "[.servers[] | select(.kv_tokens > 0) | .name] == $1"; }
gateway_completes() { gateway_says 8010/v1/completions -H 'content-type: application/json' -d '{"model": "./tiny", "prompt": "one two", "max_tokens": 4}' | grep completion_tokens >/dev/null; }
gateway_begins() {
    expect "helm upgrade with a gateway" chart upgrade --set guard.enabled=true \
        --set-json guard.services="[{\"name\": \"llm\", \"namespace\": \"$GUARDED\", \"port\": \"http\"}]"
    expect "the gateway is ready" k rollout status deployment/dualplane-guard --timeout 60s
    expect "the gateway finds the pod of a Service" until_true 20 "pod" gateway_has '["llm"]'
    expect "it answers through both guards" gateway_completes
}

completes() { guard_says 8010/v1/completions -H 'content-type: application/json' -d '{"model": "./tiny", "prompt": "one two", "max_tokens": 4}' | grep completion_tokens >/dev/null; }
# The KV cache by the engine's own metrics, and host RAM by the limit of the container, as the node's agent tells it.
counts_kv() { guard_says 10981/status | jq -e '.servers[0] | .engine == "vllm" and .kv_tokens > 0'; }
counts_host() { guard_says 10981/status | jq -e '.servers[0] | .host_limit == 6442450944 and .host_held > 0'; }
counts_by_tokenizer() { guard_says 10981/metrics | grep '^dualplane_guard_prompts_total{.*counted_by="tokenizer".*} [1-9]' >/dev/null; }
# Nobody is told that it ends before its stream has.
ends_after_its_stream() {
    local out=$WORK/stream sent began=$SECONDS
    guard_says 8010/v1/completions -N -o "$out" -m 120 -H 'content-type: application/json' \
        -d '{"model": "./tiny", "prompt": "one two", "max_tokens": 1500, "ignore_eos": true, "stream": true}' &
    sent=$!
    until_true 20 "first event" grep -q '^data:' "$out" || return
    kc -n $GUARDED delete pod llm --wait=false >/dev/null
    wait $sent
    grep -q '^data: \[DONE\]' "$out" && [ "$(grep -c '^data: {' "$out")" -gt 1000 ] || { tail -c 500 "$out"; return 1; }
    # And then it ends at once, not with its grace period of 330 s.
    kc -n $GUARDED wait --for=delete pod/llm --timeout=60s || return
    echo "ended $((SECONDS - began)) s after its request"
}

guard_ends() {
    [ -n "$GUARDED_ENGINE" ] || return 0
    expect "the guarded vLLM is ready" until_true 180 "vLLM" guarded_ready ||
        { kc -n $GUARDED logs llm -c vllm --tail 20; kc -n $GUARDED logs llm -c dualplane-guard --tail 20; } >&2
    expect "it answers through its guard" completes
    expect "it counted the prompt by the tokenizer of the server's volume" counts_by_tokenizer
    expect "the guard counts its KV cache" until_true 20 "KV cache" counts_kv
    gateway_begins
    expect "the pod ends after its stream" ends_after_its_stream
    expect "the gateway has no server then" until_true 20 "end" gateway_has '[]'
    kc delete namespace $GUARDED --wait=false >/dev/null
}
