# What the steps share.
# shellcheck shell=bash disable=SC2154

say() { printf '%5ss %s\n' "$SECONDS" "$*" >&2; }

die() { printf 'dist: %s\n' "$*" >&2; exit 1; }

# Rust's name of a target of dist/targets.
target_of() {
    local found
    found=$(awk -v name="$1" '$1 == name { print $2 }' "$here/targets")
    [ -n "$found" ] || die "no target $1; see dist/targets"
    echo "$found"
}

# Names of all targets that a machine like this one can link.
targets() {
    local mac=
    [ "$(uname)" != Darwin ] || mac=1
    awk -v mac="$mac" '/^#/ || NF == 0 { next } ($2 ~ /apple/) == (mac == 1) { print $1 }' "$here/targets"
}

# Where a program lies once it is built.
program() {
    local suffix=
    case $1 in windows-*) suffix=.exe ;; esac
    echo "$out/bin/$1/dualplane$suffix"
}

# The server of a fleet, which is installed once and not by everyone who triages: on Linux, beside the program of the image.
serves() { case $1 in linux-*-glibc) ;; *) return 1 ;; esac; }
server_program() { echo "$out/bin/$1/dualplane-server"; }

# Names of all targets whose program lies in $out, wherever it was built.
built() {
    local name
    for name in $(awk '!/^#/ && NF { print $1 }' "$here/targets"); do
        [ ! -e "$(program "$name")" ] || echo "$name"
    done
}

# Programs from PyPI, in a folder of their own.
python_tools() {
    local dir
    dir=$cache/venv-$(sha256sum "$here/requirements.txt" | cut -c1-12)
    if [ ! -x "$dir/bin/hatchling" ]; then
        say "fetch the linker for all targets and the builder of wheels"
        rm -rf "$dir"
        python3 -m venv "$dir"
        "$dir/bin/pip" --quiet --disable-pip-version-check install -r "$here/requirements.txt"
    fi
    PATH=$dir/bin:$PATH
}

# $1: program of a crate, $2: version. Built once.
cargo_tool() {
    local dir=$cache/$1-$2
    if [ ! -x "$dir/bin/$1" ]; then
        say "build $1 $2"
        CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
            cargo install --quiet --locked --root "$dir" "$1@$2"
    fi
    PATH=$dir/bin:$PATH
}

tools() {
    python_tools
    cargo_tool cargo-deb "$CARGO_DEB"
    cargo_tool cargo-generate-rpm "$CARGO_GENERATE_RPM"
    cargo_tool cargo-cyclonedx "$CARGO_CYCLONEDX"
}

# Debian's programs, unpacked and not installed. $1: package, whose folder is printed.
debian() {
    local dir=$cache/debian-$1 debs
    if [ ! -d "$dir" ]; then
        command -v apt-get >/dev/null || die "no apt-get to fetch $1 with"
        debs=$(mktemp -d)
        (
            cd "$debs"
            apt-get -qq download "$1" 2>/dev/null || { apt-get -qq update >/dev/null && apt-get -qq download "$1"; }
            mkdir root
            for deb in *.deb; do dpkg -x "$deb" root; done
        )
        mkdir -p "$cache"
        mv "$debs/root" "$dir"
        rm -rf "$debs"
    fi
    echo "$dir"
}

# A tar with the same bytes every time. $1: folder, the rest: names in it.
same_tar() {
    local dir=$1
    shift
    tar -C "$dir" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode='u=rwX,go=rX' -cf - "$@"
}

# Standard input, a quarter smaller than gzip makes it. The module is Python's own: xz is not on every machine.
as_xz() { python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(sys.stdin.buffer.read(), preset=9 | lzma.PRESET_EXTREME))'; }
