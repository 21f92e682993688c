# The chart without a cluster: what it renders is valid, the same as deploy/, and bad values are refused.
# shellcheck shell=bash

objects() { "$(helm_dir)/objects" "$@"; }

# $1: what is rendered; the rest: options of `helm template`.
valid() {
    local what=$1 said
    shift
    if said=$(render "$@" 2>&1 >"$WORK/rendered.yaml") && said=$("$(helm_dir)/kubeconform" -strict -summary \
        -schema-location "$(schemas_dir)/{{ .ResourceKind }}{{ .KindSuffix }}.json" "$WORK/rendered.yaml" 2>&1); then
        good "$what: $(sed -n 's/^Summary: \([0-9]*\) .*/\1 objects/p' <<<"$said")"
    else
        bad "$what: $said"
    fi
}

# $1: a line of chart/refused.
refused() {
    local words=${1##*| } options said
    read -ra options <<<"${1%|*}"
    if said=$(render "${options[@]}" 2>&1 >/dev/null); then
        bad "not refused: ${options[*]}"
    elif ! grep -qF -- "$words" <<<"$said"; then
        bad "${options[*]} is refused without \"$words\": $said"
    fi
}

same_as_deploy() {
    local deploy=$CHART/../.. name
    mkdir "$WORK/same"
    render | objects - >"$WORK/same/default.json"
    render --set agent.privileged=false | objects - >"$WORK/same/unprivileged.json"
    render -f "$CHART/ci/everything-values.yaml" | objects - >"$WORK/same/everything.json"
    # As long as Helm lets a release's name be.
    helm template "$(printf 'r%.0s' {1..53})" "$CHART" | objects - >"$WORK/same/long.json"
    objects "$deploy" >"$WORK/same/overlay.json"
    for name in agent rbac; do objects "$deploy/$name.yaml" >"$WORK/same/$name.json"; done
    objects "$CHART/values.yaml" >"$WORK/same/values.json"
    objects "$CHART/values.schema.json" >"$WORK/same/schema.json"
    python3 "$E2E/lib/chart/same.py" "$WORK/same" || failed=1
}

# What a user gets: without the value files of these tests, and of the program's version.
packaged() {
    local version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$E2E/../Cargo.toml" | head -1)
    grep -qx "appVersion: $version" "$CHART/Chart.yaml" || bad "Chart.yaml: appVersion is not $version, as in Cargo.toml"
    helm package "$CHART" -d "$WORK" >/dev/null || bad "helm package"
    ! grep -q /ci/ < <(tar -tf "$WORK"/dualplane-*.tgz) || bad "the package holds ci/"
    helm template dualplane "$WORK"/dualplane-*.tgz -n dualplane | cmp -s - <(render) || bad "the package renders something else"
    good "package"
}

lint() {
    WORK=$HELM_HOME_DIR/work
    mkdir "$WORK"
    local file line said count=0
    for file in "" "$CHART"/ci/*-values.yaml; do
        said=$(helm lint --strict --quiet "$CHART" ${file:+-f "$file"} 2>&1) || bad "helm lint $(basename "$file"): $said"
        valid "$(basename "${file:-defaults}")" ${file:+-f "$file"}
    done
    while read -r line; do
        case $line in '' | '#'*) continue ;; esac
        refused "$line"
        count=$((count + 1))
    done <"$E2E/lib/chart/refused"
    good "$count bad values are refused with a sentence"
    same_as_deploy
    packaged
    return $failed
}
