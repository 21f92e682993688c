# The agent's image in the cluster's containerd.
# shellcheck shell=bash

# The program with the libraries that it links, as an image without a registry; `dist/run image` makes the real one.
stand_in() {
    local binary=${DUALPLANE:-$E2E/../target/release/dualplane} root=$WORK/root library
    [ -x "$binary" ] || die "no $binary: cargo build --release -p dualplane, or DUALPLANE=FILE"
    mkdir -p "$root/usr/local/bin" "$root/tmp"
    cp "$binary" "$root/usr/local/bin/dualplane"
    local server
    server=$(dirname "$binary")/dualplane-server
    if [ -x "$server" ]; then
        mkdir -p "$root/usr/bin"
        cp "$server" "$root/usr/bin/"
    else
        server=
    fi
    # shellcheck disable=SC2086 # None, or one.
    for library in $(ldd "$binary" $server | grep -o '/[^ ]*\.so[^ ]*'); do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
    layer "$WORK/layer.tar" "$root"
    NEW=$WORK docker_archive "$IMAGE" "$WORK/layer.tar" '["/usr/local/bin/dualplane"]'
}

# $1: the chart's image.
import_agent() {
    IMAGE=$1
    local archive=${DUALPLANE_IMAGE:-}
    if [ -z "$archive" ]; then
        stand_in
        archive=$WORK/${IMAGE//[\/:]/_}.tar
    fi
    ctr images import "$archive" >/dev/null || die "containerd does not take $archive"
    grep -qxF "$IMAGE" < <(ctr images ls -q) || die "$archive holds no $IMAGE"
}
