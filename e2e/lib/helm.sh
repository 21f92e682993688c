# Helm and kubeconform, built like the cluster's programs, and the JSON schemas of all kinds that the chart makes.
# shellcheck shell=bash

CHART=$E2E/../deploy/helm/dualplane

failed=0
good() { printf '%6ss %s\n' "$SECONDS" "$*"; }
# shellcheck disable=SC2034 # The parts return it.
bad() { echo "FAILED $*" >&2; failed=1; }
# $1: what, then a command that must succeed.
expect() {
    local what=$1 said
    shift
    if said=$("$@" 2>&1); then good "$what"; else bad "$what: ${said:0:1500}"; fi
}

KUBECONFORM=$E2E/tools/kubeconform

helm_module() { echo "$E2E/tools/helm${E2E_HELM:+-$E2E_HELM}"; }
helm_dir() { echo "$CACHE/helm-$(hash_of "$(helm_module)"/go.* "$E2E"/tools/helm/{go.*,*.go} "$KUBECONFORM"/go.*)"; }
schemas_dir() { echo "$CACHE/schemas-$(hash_of "$(kube_module)"/go.* "$KUBECONFORM"/go.* "$E2E/lib/chart/schemas.py")"; }

operators_crds() {
    local operator
    operator=$(module_dir "$KUBECONFORM" github.com/prometheus-operator/prometheus-operator) || return
    echo "$operator/jsonnet/prometheus-operator"
}

build_helm() {
    local from helm=helm.sh/helm/v${E2E_HELM:-3} version minor
    from=$(helm_module)
    version=$(module_version "$from" "$helm") || return
    # Without a cluster, Helm takes the Kubernetes that its own libraries are of; so do the releases of Helm 3. Helm 4 finds it.
    minor=$(module_version "$from" k8s.io/client-go | cut -d. -f2)
    say "build helm $version"
    go_build "$from" -ldflags "-s -w -X $helm/internal/version.version=$version
        -X $helm/pkg/chartutil.k8sVersionMajor=1 -X $helm/pkg/chartutil.k8sVersionMinor=$minor
        -X $helm/pkg/lint/rules.k8sVersionMajor=1 -X $helm/pkg/lint/rules.k8sVersionMinor=$minor" \
        -o "$NEW/helm" "$helm/cmd/helm" || return
    go_build "$E2E/tools/helm" -ldflags '-s -w' -o "$NEW/objects" . || return
    say "build kubeconform $(module_version "$KUBECONFORM" github.com/yannh/kubeconform)"
    go_build "$KUBECONFORM" -ldflags '-s -w' -o "$NEW/kubeconform" github.com/yannh/kubeconform/cmd/kubeconform
}

# Kubernetes' own kinds, of the version that the cluster has, and those of Prometheus' operator.
build_schemas() {
    local kube crds
    kube=$(module_dir "$(kube_module)" k8s.io/kubernetes) || return
    crds=$(operators_crds) || return
    say "write the schemas of $(basename "$kube")"
    python3 "$E2E/lib/chart/schemas.py" "$NEW" "$kube/api/openapi-spec/swagger.json" "$crds"/*-crd.json
}

build_for_chart() {
    need_commands go python3
    once "$(helm_dir)" build_helm
    once "$(schemas_dir)" build_schemas
    touch "$(helm_dir)" "$(schemas_dir)"
    # Nothing of the user's: no repositories, no plugins, no settings.
    HELM_HOME_DIR=$(mktemp -d)
    trap 'rm -rf "$HELM_HOME_DIR"' EXIT
}

helm() {
    env HELM_CACHE_HOME="$HELM_HOME_DIR" HELM_CONFIG_HOME="$HELM_HOME_DIR" HELM_DATA_HOME="$HELM_HOME_DIR" "$(helm_dir)/helm" "$@"
}

# $*: options of `helm template`. The name and namespace are those that deploy/ uses.
render() { helm template dualplane "$CHART" -n dualplane "$@"; }
