# The server of a fleet by the chart: who has a token sends a death and reads it, and it outlives the pod.
# shellcheck shell=bash disable=SC2154

SERVER_VALUES=server.enabled=true,server.behindProxy=true,server.tokensSecret.name=fleet-tokens,server.storage.existingClaim=fleet,server.kubernetes.enabled=true,server.kubernetes.cluster=e2e,server.kubernetes.watch.enabled=true

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

# Callers whom the cluster knows: a service account that may send, one that may get pods in one namespace, one that may nothing.
people() {
    kc apply -f - <<YAML
apiVersion: v1
kind: Namespace
metadata: {name: fleet-other}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: fleet-sender}
rules:
- {apiGroups: [dualplane.dev], resources: [incidents], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: fleet-sender}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fleet-sender}
subjects: [{kind: ServiceAccount, name: fleet-sender, namespace: $NAMESPACE}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: fleet-reader, namespace: fleet-other}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: fleet-reader, namespace: $NAMESPACE}]
YAML
    for name in fleet-sender fleet-reader fleet-nobody; do k create serviceaccount "$name" || return; done
}
# $1: service account, $2: audience; the rest as of `asks`, whose status is printed.
as() {
    local token
    token=$(k create token "$1" --audience "$2") || return
    curl -s -o "$WORK/as" -w '%{http_code}' -m 10 -H "Authorization: Bearer $token" "${@:4}" "localhost:8377$3"
}
sends() {
    jq -n --slurpfile r "$WORK/report.json" --arg ns "$1" '{report: $r[0], where: {cluster: "e2e", namespace: $ns}}' >"$WORK/sent.json"
    [ "$(as fleet-sender dualplane-server "/v1/incidents/of-$1" -X PUT --data-binary "@$WORK/sent.json")" = 201 ]
}
the_cluster_knows() {
    sends fleet-other && sends fleet-hidden || { cat "$WORK/as"; return 1; }
    [ "$(as fleet-reader dualplane-server /v1/incidents?each=true)" = 200 ] || { cat "$WORK/as"; return 1; }
    grep -q of-fleet-other "$WORK/as" && ! grep -q of-fleet-hidden "$WORK/as" || { cat "$WORK/as"; return 1; }
    [ "$(as fleet-reader dualplane-server /v1/incidents/of-fleet-hidden)" = 404 ] || return
    [ "$(as fleet-reader dualplane-server /v1/incidents/x -X PUT --data-binary "@$WORK/sent.json")" = 403 ] || return
    [ "$(as fleet-sender dualplane-server /v1/incidents)" = 403 ] || return
    [ "$(as fleet-nobody dualplane-server /v1/incidents)" = 403 ] || return
    # A token for the API server itself must not be taken: whoever receives it could use it there.
    [ "$(as fleet-reader https://kubernetes.default.svc.cluster.local /v1/incidents)" = 401 ]
}

# A model server whose kills nobody sends: it has no agent's rights, and what it may not read must not keep a death out.
dies() {
    kc apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: watched, namespace: fleet-other}
spec:
  containers:
  - name: server
    image: registry.local/busybox:1
    imagePullPolicy: Never
    command: [sh, -c, "vllm serve /m 2>/dev/null || tail /dev/zero"]
    resources: {limits: {memory: 48Mi}}
YAML
}
keeps_what_dies() { grep -q host_oom_killed < <(asks "/v1/incidents?cluster=e2e&pod=watched"); }
its_bundle_has() {
    local id
    id=$(asks "/v1/incidents?cluster=e2e&pod=watched" | jq -r '.items[0].id') || return
    asks "/v1/incidents/$id/bundle" -o "$WORK/watched.tar.zst" && zstd -dc "$WORK/watched.tar.zst" | tar t | grep "$1" >/dev/null
}

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
    expect "service accounts and roles" people
    expect "the cluster says who its callers are, and what they may" the_cluster_knows
    expect "a model server dies beside it" dies
    expect "it keeps the death that nobody sent" until_true 90 "the watch" keeps_what_dies
    expect "with the pod's events" its_bundle_has events
    server_forward_down
    k delete pod -l app.kubernetes.io/component=server --wait >/dev/null
    expect "a new pod comes" k rollout status deployment/dualplane-server --timeout 90s
    expect "the notes' command reaches that one" until_true 30 "server" server_answers
    expect "the death is still there" lists_it
    server_forward_down
    expect "helm upgrade takes the server away" chart upgrade --set server.enabled=false
    k delete pvc/fleet secret/fleet-tokens serviceaccount/fleet-{sender,reader,nobody} --wait=false >/dev/null
    kc delete namespace/fleet-other clusterrole/fleet-sender clusterrolebinding/fleet-sender --wait=false >/dev/null
    kc delete pv/dualplane-fleet --wait=false >/dev/null
}
