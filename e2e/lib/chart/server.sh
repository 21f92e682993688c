# The server of a fleet by the chart: who has a token sends a death and reads it, and it outlives the pod.
# shellcheck shell=bash disable=SC2154

SERVER_VALUES=server.enabled=true,server.behindProxy=true,server.tokensSecret.name=fleet-tokens,server.storage.existingClaim=fleet

# A volume of the node, as no provisioner is here.
server_volume() {
    local folder=$STATE/fleet
    mkdir -p "$folder" && chown 65532:65532 "$folder"
    kc apply -f - <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: dualplane-fleet}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: $folder}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: fleet, namespace: $NAMESPACE}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: dualplane-fleet
  resources: {requests: {storage: 1Gi}}
YAML
}

# $1: path, the rest: options of curl. Through the notes' command.
asks() { curl -fsS -m 10 -H "Authorization: Bearer $TOKEN" "${@:2}" "localhost:8377$1"; }
server_answers() {
    curl -fsS -m 5 localhost:8377/readyz >/dev/null && return
    kill -0 "${SERVER_FORWARD:-}" 2>/dev/null && return 1
    PATH="$(kube_dir):$PATH" setsid bash -c "$(note service/dualplane-server)" >"$WORK/server-forward.log" 2>&1 &
    SERVER_FORWARD=$!
    return 1
}
server_forward_down() {
    [ -z "${SERVER_FORWARD:-}" ] || kill -- "-$SERVER_FORWARD" 2>/dev/null
    SERVER_FORWARD=
}
lists_it() { grep -q host_oom_killed < <(asks /v1/incidents); }
refuses_strangers() { [ "$(curl -s -o /dev/null -m 5 -w '%{http_code}' localhost:8377/v1/incidents)" = 401 ]; }

the_server() {
    local binary=${DUALPLANE:-$E2E/../target/release/dualplane} server
    server=$(dirname "$binary")/dualplane-server
    [ -x "$server" ] || { good "no dualplane-server beside $binary: the server was not installed"; return; }
    "$server" token e2e --role admin >"$WORK/tokens.toml" 2>"$WORK/token"
    TOKEN=$(sed -n 's/.*: //p' "$WORK/token")
    k create secret generic fleet-tokens --from-file=tokens.toml="$WORK/tokens.toml" >/dev/null
    expect "a volume for the server" server_volume
    expect "helm upgrade with the server" chart upgrade --set "$SERVER_VALUES"
    expect "its pod is ready" k rollout status deployment/dualplane-server --timeout 90s
    expect "the notes' command reaches it" until_true 30 "server" server_answers
    "$binary" triage "$E2E/../testdata/incidents/sglang-hicache-over-limit" -o json >"$WORK/report.json"
    expect "it takes a death" asks /v1/incidents/e2e-1 -X PUT -H 'content-type: application/json' --data-binary "@$WORK/report.json"
    expect "and lists it" lists_it
    expect "it refuses who has no token" refuses_strangers
    server_forward_down
    k delete pod -l app.kubernetes.io/component=server --wait >/dev/null
    expect "a new pod comes" k rollout status deployment/dualplane-server --timeout 90s
    expect "the notes' command reaches that one" until_true 30 "server" server_answers
    expect "the death is still there" lists_it
    server_forward_down
    expect "helm upgrade takes the server away" chart upgrade --set server.enabled=false
    k delete pvc/fleet secret/fleet-tokens --wait=false >/dev/null
    kc delete pv/dualplane-fleet --wait=false >/dev/null
}
