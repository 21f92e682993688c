# An OCI image of both architectures, without a daemon: the program, and the C library that NVML needs, nothing else. There is
# no shell in it.
# shellcheck shell=bash disable=SC2154

# $1: amd64 or arm64. The libraries of Debian, as NVML and the program ask for them; the folder is printed.
c_library() {
    case $1:$(dpkg --print-architecture 2>/dev/null) in
    "$1:$1") echo "$(debian libc6)" ;;
    arm64:*) echo "$(debian libc6-arm64-cross)" ;;
    *) return 77 ;;
    esac
}

# $1: architecture, $2: folder for the file system.
root_of() {
    local arch=$1 to=$2 from triple loader name found
    from=$(c_library "$arch") || return
    case $arch in
    amd64) triple=x86_64-linux-gnu loader=lib64/ld-linux-x86-64.so.2 ;;
    arm64) triple=aarch64-linux-gnu loader=lib/ld-linux-aarch64.so.1 ;;
    esac
    mkdir -p "$to/usr/bin" "$to/lib/$triple" "$to/etc" "$to/$(dirname "$loader")" "$to/usr/share/doc/dualplane"
    cp "$(program "linux-$arch-glibc")" "$to/usr/bin/dualplane"
    cp "$(server_program "linux-$arch-glibc")" "$to/usr/bin/dualplane-server"
    cp "$root/LICENSE" "$to/usr/share/doc/dualplane/"
    for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
        found=$(find "$from" -name "$name" -print -quit)
        cp -L "$found" "$to/lib/$triple/$name"
    done
    found=$(find "$from" -name "$(basename "$loader")" -print -quit)
    cp -L "$found" "$to/$loader"
    echo '/lib/'"$triple" >"$to/etc/ld.so.conf"
    echo 'root:x:0:0:root:/:/sbin/nologin
nonroot:x:65532:65532:nonroot:/:/sbin/nologin' >"$to/etc/passwd"
    # Where the agent keeps its state; a volume goes over it.
    mkdir -p "$to/var/lib/dualplane" "$to/tmp"
}

image() {
    local work arch layers=()
    work=$(mktemp -d)
    for arch in amd64 arm64; do
        [ -e "$(program "linux-$arch-glibc")" ] || { say "no linux-$arch-glibc: not in the image"; continue; }
        root_of "$arch" "$work/$arch" || { say "no C library for $arch here: not in the image"; continue; }
        same_tar "$work/$arch" . >"$work/$arch.tar"
        layers+=("$arch=$work/$arch.tar")
    done
    [ ${#layers[@]} -gt 0 ] || die "no program for an image; dist/run binaries linux-amd64-glibc"
    rm -rf "$out/image"
    python3 "$here/oci_layout.py" "$out/image" "ghcr.io/dualplane/dualplane:$version" "$version" "${layers[@]}"
    same_tar "$out/image" . >"$out/dualplane-v$version-image.tar"
    rm -rf "$work" "$out/image"
    say "image of ${layers[*]%%=*}: $(($(wc -c <"$out/dualplane-v$version-image.tar") / 1024)) KiB"
}
