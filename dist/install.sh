#!/bin/sh
# Installs dualplane for Linux or macOS, after its sum was checked:
#
#     curl -fsSL https://github.com/dualplane/dualplane/releases/latest/download/install.sh | sh
#     sh install.sh /usr/local/bin
#
# The folder is the first argument, else ~/.local/bin. DUALPLANE_VERSION: another version than the latest.
# DUALPLANE_RELEASES: another place to load from. DUALPLANE_STATIC=1: the static program also where glibc is.
set -eu

to=${1:-$HOME/.local/bin}
releases=${DUALPLANE_RELEASES:-https://github.com/dualplane/dualplane/releases/download}

fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

get() {
    if command -v curl >/dev/null; then curl -fsSL --retry 3 -o "$2" "$1"
    elif command -v wget >/dev/null; then wget -q -O "$2" "$1"
    else fail "needs curl or wget"
    fi || fail "cannot load $1"
}

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "no program for $(uname -s); on Windows: pip install dualplane" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "no program for $(uname -m)" ;;
esac
name=$os-$arch
# The one for glibc reads GPUs through the driver's library; the static one runs anywhere.
if [ $os = linux ] && [ -z "${DUALPLANE_STATIC:-}" ] && getconf GNU_LIBC_VERSION >/dev/null 2>&1; then name=$name-glibc; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=${DUALPLANE_VERSION:-}
if [ -z "$version" ]; then
    get https://api.github.com/repos/dualplane/dualplane/releases/latest "$work/latest"
    version=$(sed -n 's/.*"tag_name": *"v\([^"]*\)".*/\1/p' "$work/latest")
    [ -n "$version" ] || fail "cannot tell the latest version; set DUALPLANE_VERSION"
fi
get "$releases/v$version/SHA256SUMS" "$work/SHA256SUMS"
# Where it can be unpacked, the smaller one.
ending=tar.gz
if command -v xz >/dev/null && grep -q "  dualplane-v$version-$os-$arch.*\.tar\.xz\$" "$work/SHA256SUMS"; then ending=tar.xz; fi
file=dualplane-v$version-$name.$ending
grep -q "  $file\$" "$work/SHA256SUMS" || { name=$os-$arch; file=dualplane-v$version-$name.$ending; }
want=$(sed -n "s/^\([0-9a-f]\{64\}\)  $file\$/\1/p" "$work/SHA256SUMS")
[ -n "$want" ] || fail "version $version has no $file"
get "$releases/v$version/$file" "$work/$file"
if command -v sha256sum >/dev/null; then is=$(sha256sum "$work/$file" | cut -c1-64)
elif command -v shasum >/dev/null; then is=$(shasum -a 256 "$work/$file" | cut -c1-64)
else fail "needs sha256sum or shasum to check what was loaded"
fi
[ "$is" = "$want" ] || fail "$file has the sum $is, and SHA256SUMS says $want: nothing was installed"

case $ending in
tar.xz) xz -dc "$work/$file" | tar -xf - -C "$work" ;;
*) tar -xzf "$work/$file" -C "$work" ;;
esac
mkdir -p "$to"
# Over a program that runs as well: the old file stays until it ends.
mv "$work/dualplane" "$to/.dualplane.new"
chmod 755 "$to/.dualplane.new"
mv "$to/.dualplane.new" "$to/dualplane"
printf 'dualplane %s is %s/dualplane\n' "$version" "$to"
case :$PATH: in *":$to:"*) ;; *) printf 'add it to the path: export PATH="%s:$PATH"\n' "$to" ;; esac
