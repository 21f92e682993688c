# What a bare machine lacks: Kubernetes' programs, our own, Debian's, the images. Each is made once.
# shellcheck shell=bash

# $1: folder to make. The rest: a command that fills $NEW. Half-made folders never get the name.
once() {
    local dir=$1
    shift
    [ -e "$dir" ] && return
    mkdir -p "$CACHE"
    NEW=$(mktemp -d "$dir.XXXXXX")
    "$@" || { rm -rf "$NEW"; die "$* failed"; }
    # Another run may have been faster.
    mv -T "$NEW" "$dir" 2>/dev/null || rm -rf "$NEW"
}

go_build() { (cd "$1" && shift && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -trimpath "$@"); }

build_kube() {
    local name version
    version=$(sed -n 's|.*k8s.io/kubernetes \(v[0-9.]*\).*|\1|p' "$(kube_module)/go.mod")
    # One at a time: together they would need more memory than CI's machines have.
    for name in kube-apiserver kubelet kube-controller-manager kube-scheduler kubectl; do
        say "build $name $version"
        go_build "$(kube_module)" -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" \
            -o "$NEW/" "k8s.io/kubernetes/cmd/$name" || return
    done
    say "build etcd"
    go_build "$E2E/tools/etcd" -ldflags '-s -w' -o "$NEW/etcd" go.etcd.io/etcd/server/v3
}

build_tools() {
    say "build the tests' own programs"
    go_build "$E2E/tools" -ldflags '-s -w' -o "$NEW/" ./cmd/...
}

# With the libraries of our Kubernetes, most of which are compiled by then.
build_ksm() {
    say "build kube-state-metrics"
    go_build "$E2E/tools/kube-state-metrics" -ldflags '-s -w' -o "$NEW/" k8s.io/kube-state-metrics/v2
}

# Kinds that printed objects are of.
build_crds() {
    local keda
    keda=$(module_dir "$E2E/tools/keda" github.com/kedacore/keda/v2) || return
    say "take KEDA's kinds from $(basename "$keda")"
    cp "$keda/config/crd/bases/keda.sh_scaledobjects.yaml" "$NEW/"
}

# Packages are unpacked, not installed: no service starts, and nothing of the machine changes.
build_debian() {
    local debs
    mapfile -t packages <"$E2E/lib/packages"
    debs=$(mktemp -d)
    say "fetch ${packages[*]}"
    (
        cd "$debs" || exit
        apt-get -qq download "${packages[@]}" 2>/dev/null \
            || { apt-get -qq update >/dev/null && apt-get -qq download "${packages[@]}"; } || exit
        for deb in *.deb; do dpkg -x "$deb" "$NEW" || exit; done
    )
    local ok=$?
    rm -rf "$debs"
    return $ok
}

need_commands() {
    local missing=() name
    for name in "$@"; do command -v "$name" >/dev/null || missing+=("$name"); done
    [ ${#missing[@]} -eq 0 ] || cannot "no ${missing[*]}"
}

build() {
    need_commands go cc openssl ip dpkg apt-get
    once "$(debian_dir)" build_debian
    once "$(images_dir)" build_images
    once "$(tools_dir)" build_tools
    once "$(crds_dir)" build_crds
    once "$(kube_dir)" build_kube
    once "$(ksm_dir)" build_ksm
    # What no branch has used for a week goes.
    touch "$(crds_dir)" "$(debian_dir)" "$(images_dir)" "$(ksm_dir)" "$(tools_dir)" "$(kube_dir)"
    find "$CACHE" -mindepth 1 -maxdepth 1 -mtime +7 -exec rm -rf {} +
}
