# The chart in a real cluster: what a person does with it, from the installation to what it leaves behind.
# shellcheck shell=bash disable=SC2154

RELEASE=dualplane
NAMESPACE=dualplane
# From `helm install` to the first verdict.
MOST_SECONDS=60
RECEIVER_PORT=18080

k() { kc -n $NAMESPACE "$@"; }

# $1: install or upgrade; the rest: more options. The state lies where `e2e/run down` removes it.
chart() { helm "$1" $RELEASE "$CHART" -n $NAMESPACE --set agent.state.path="$STATE/agent" "${@:2}"; }
# Of a DaemonSet that was just made, the status says that none of 0 pods is missing.
has_pods() { [ "$(k get daemonset dualplane-agent -o 'jsonpath={.status.desiredNumberScheduled}')" -gt 0 ]; }
rolled_out() { until_true 20 "pods" has_pods && k rollout status daemonset/dualplane-agent --timeout 90s; }
no_pods() { [ -z "$(k get pods -o name)" ]; }

# What is created is valid for the API server, with all its defaults and admission.
dry_runs() {
    local file name crds
    crds=$(operators_crds)
    # Too large for an annotation of `apply`.
    kc apply --server-side -f "$crds/podmonitors-crd.json" -f "$crds/prometheusrules-crd.json" >/dev/null
    for name in $NAMESPACE serving batch team-a team-b monitoring; do kc create namespace $name --save-config >/dev/null 2>&1; done
    until_true 20 "PodMonitor" kc get podmonitors -A
    until_true 20 "PrometheusRule" kc get prometheusrules -A
    for file in "$CHART/values.yaml" "$CHART"/ci/*-values.yaml; do
        expect "the API server takes $(basename "$file")" dry_run "$file"
        expect "lint finds nothing in it" lint_clean "$file"
    done
    expect "the chart's rules are those of the program" same_rules
}
dry_run() { render -f "$1" | kc create --dry-run=server --validate=strict -f -; }

# Ends with 17 or 18 where it finds something.
lint_clean() {
    grep -q "found 0 errors, 0 warnings and 0 notes" < <(render -f "$1" | "${DUALPLANE:-$E2E/../target/release/dualplane}" lint -)
}

# The chart fills its rules as the program does, and Prometheus takes them.
same_rules() {
    local binary=${DUALPLANE:-$E2E/../target/release/dualplane} name
    # ci/fleet-values.yaml asks for the same.
    "$binary" rules -o prometheusrule --disable queue-long --set host_memory_ratio=0.85 --set ttft_seconds=2.5 |
        objects - >"$WORK/rules-program.json"
    render -f "$CHART/ci/fleet-values.yaml" | objects - >"$WORK/rules-chart.json"
    for name in program chart; do
        python3 "$E2E/lib/chart/groups.py" "$WORK/rules-$name.json" >"$WORK/rules-$name.yaml" || return
    done
    cmp "$WORK/rules-program.yaml" "$WORK/rules-chart.yaml" &&
        "$(debian_dir)/usr/bin/promtool" check rules "$WORK/rules-chart.yaml"
}

# A namespace that forbids host folders, and the way out that the notes tell.
forbidden_first() {
    kc label namespace $NAMESPACE pod-security.kubernetes.io/enforce=baseline >/dev/null
    chart install >/dev/null 2>&1
    expect "Pod Security level baseline refuses the pods" until_true 20 "refused pod" refused_by_level
    expect "the label of the notes lets them in" run_note "kubectl label"
    expect "pods are ready then" rolled_out
    helm uninstall $RELEASE -n $NAMESPACE --wait >/dev/null
    until_true 30 "end of the pods" no_pods
    rm -rf "${STATE:?}/agent"
}
refused_by_level() { grep -q 'violates PodSecurity "baseline' < <(k get events -o 'jsonpath={.items[*].message}'); }

timed() {
    local begun took
    begun=$(date +%s%N)
    chart install >/dev/null || { bad "helm install"; return; }
    PATH="$(kube_dir):$PATH" KUBECONFIG=$STATE/admin.kubeconfig "$E2E/scenarios/apply" pid1-oom
    if until_true $((MOST_SECONDS * 2)) "verdict" a_verdict; then
        took=$((($(date +%s%N) - begun) / 1000000))
        good "from helm install to the first verdict: $((took / 1000)).$(printf %03d $((took % 1000))) s, $(first_class)"
        [ $took -le $((MOST_SECONDS * 1000)) ] || bad "more than $MOST_SECONDS s"
    else
        bad "no verdict: $(k get pods -o wide; k logs daemonset/dualplane-agent --tail 20) $(cat "$WORK/forward.log")"
    fi
    grep -q pid1-oom < <(incidents) || bad "the verdict is not of pid1-oom: $(incidents)"
    # It dies again and again; what follows needs it no more.
    kc -n serving delete pod pid1-oom --wait=false >/dev/null
}

the_notes() {
    expect "notes: pods are ready" run_note "rollout status"
    expect "notes: metrics" bash -c "$(note /metrics) | grep '^dualplane_agent_info' >/dev/null"
    expect "notes: incidents" bash -c "$(note /incidents) | grep pid1-oom >/dev/null"
}

# $1: what was done. The incidents from before are still there.
kept() {
    rolled_out >/dev/null || bad "$1: $(k get pods -o wide)"
    forward || { bad "$1: $(cat "$WORK/forward.log")"; return; }
    if grep -q '^<' < <(diff <(sort "$WORK/before") <(verdicts | sort)); then
        bad "$1 loses incidents: $(cat "$WORK/before"), then $(verdicts)"
    else
        good "$1 keeps $(wc -l <"$WORK/before") incidents"
    fi
}

# $1: a word that the agent's arguments must hold, or with ! must not.
arguments() {
    local word=${1#!} args
    args=$(k get daemonset dualplane-agent -o 'jsonpath={.spec.template.spec.containers[0].args}')
    case $1 in
    !*) [[ $args != *$word* ]] ;;
    *) [[ $args == *$word* ]] ;;
    esac
}

changes() {
    verdicts >"$WORK/before"
    expect "helm upgrade with other values" chart upgrade --set agent.state.disk=128Mi,agent.nodes=nvidia,labels.team=serving
    kept "the upgrade"
    expect "the new values hold" arguments --disk=128Mi
    expect "helm rollback" helm rollback $RELEASE 1 -n $NAMESPACE
    kept "the rollback"
    expect "the old values hold" arguments '!--disk'
    expect "helm upgrade to no privileges" chart upgrade --set agent.privileged=false
    kept "the agent without privileges"
}

# Every mount and flag of the sinks: what was kept before goes to a volume and, with token and headers, to a URL.
sinks() {
    python3 "$E2E/lib/chart/receiver.py" $NODE_IP $RECEIVER_PORT >"$WORK/received" 2>&1 &
    RECEIVER=$!
    k create secret generic store --from-literal=bearer=s3cret --from-literal=more='X-From: node' >/dev/null
    mkdir -p "$STATE/copies"
    expect "helm upgrade with sinks" chart upgrade --set-json 'agent.sinks={
        "copyTo": [{"name": "archive", "folder": "incidents", "volume": {"hostPath": {"path": "'"$STATE/copies"'"}}}],
        "send": {"urls": ["http://'"$NODE_IP:$RECEIVER_PORT"'/in/{node}/{file}"], "tokenInClear": true,
            "tokenSecret": {"name": "store", "key": "bearer"}, "headersSecret": {"name": "store", "key": "more"}}}'
    expect "pods are ready with sinks" rolled_out
    expect "incidents are copied" until_true 30 "copy" bash -c "ls $STATE/copies/incidents/*.tar.zst"
    expect "incidents are sent, with token and headers" until_true 30 "delivery" \
        grep -E "^PUT /in/$NODE/[^ ]*\.tar\.zst [0-9]+ token node$" "$WORK/received"
    kill $RECEIVER
    RECEIVER=
}

# Everything that carries the release's label, of every kind that can be listed; pods take their time to end.
left_over_objects() {
    local kind
    for kind in $(kc api-resources --verbs=list -o name | grep -v '^\(events\|componentstatuses\)'); do
        kc get "$kind" -A -l app.kubernetes.io/instance=$RELEASE -o name 2>/dev/null
    done
}
nothing_left() { [ -z "$(left_over_objects)" ]; }

uninstalled() {
    stop_forward
    expect "helm uninstall" helm uninstall $RELEASE -n $NAMESPACE --wait
    expect "no object is left" until_true 30 "end of all objects" nothing_left
    expect "the node's state is left" bash -c "ls $STATE/agent/incidents/*.tar.zst"
}

# An agent of deploy/agent.yaml becomes the chart's, as README.md says.
taken_over() {
    local before=$WORK/before
    sed "s|path: /var/lib/dualplane|path: $STATE/agent|" "$CHART/../../agent.yaml" | kc apply -f - >/dev/null 2>&1
    rolled_out >/dev/null || bad "deploy/agent.yaml: $(k get pods)"
    k delete daemonset dualplane-agent --wait >/dev/null
    expect "helm install takes over what deploy/agent.yaml made" chart install --take-ownership
    [ -s "$before" ] && kept "the take-over"
    uninstalled
}

# README.md's command, with an image that is here.
removed_from_the_node() {
    kc debug node/$NODE --image=registry.local/busybox:1 --profile=sysadmin -- rm -rf "/host$STATE/agent" >/dev/null 2>&1
    expect "README's command removes it" until_true 30 "end of $STATE/agent" test ! -e "$STATE/agent"
}

live_down() {
    stop_forward
    server_forward_down
    kc delete pv/dualplane-fleet --wait=false --ignore-not-found >/dev/null 2>&1
    [ -z "${RECEIVER:-}" ] || kill "$RECEIVER" 2>/dev/null
    helm uninstall $RELEASE -n $NAMESPACE >/dev/null 2>&1
    kc -n default delete pods -l app.kubernetes.io/managed-by=kubectl-debug --wait=false >/dev/null 2>&1
    kc -n serving delete pod pid1-oom --wait=false --ignore-not-found >/dev/null 2>&1
    kc delete namespace $NAMESPACE $GUARDED batch team-a team-b monitoring --wait=false --ignore-not-found >/dev/null 2>&1
    kc delete crd {podmonitors,prometheusrules}.monitoring.coreos.com --ignore-not-found >/dev/null 2>&1
    rm -rf "$HELM_HOME_DIR"
}

live() {
    alive kube-apiserver || die "no cluster is up: e2e/run up"
    ! alive fleet || die "the fleet's nodes would never run the agent's pods: e2e/run down, e2e/run up"
    WORK=$HELM_HOME_DIR/work
    mkdir "$WORK"
    export KUBECONFIG=$STATE/admin.kubeconfig NO_PROXY=${NO_PROXY:+$NO_PROXY,}$SERVICE_IP,$NODE_IP,127.0.0.1,localhost
    ! kc get namespace $NAMESPACE >/dev/null 2>&1 || die "the namespace $NAMESPACE is in use"
    trap live_down EXIT
    import_agent "$(render | sed -n 's/^ *image: "\(.*\)"/\1/p')"
    dry_runs
    forbidden_first
    timed
    the_notes
    guard_begins
    changes
    sinks
    the_server
    guard_ends
    uninstalled
    taken_over
    removed_from_the_node
    return $failed
}
