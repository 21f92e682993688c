# Programs, and whether they run.
# shellcheck shell=bash disable=SC2154

# $1: name, $2: source folder, $3: folder for cargo, the rest: which crate, for cargo. Prints the folder of the program.
build_one() {
    local name=$1 source=$2 build=$3 target plain
    shift 3
    target=$(target_of "$name")
    plain=${target%.2.17}
    rustup target add "$plain" >/dev/null 2>&1 || true
    # No path of this machine stays in the program: neither for readers, nor as a difference between two builds.
    local remap=(
        "--remap-path-prefix=$source=/dualplane"
        "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
        "--remap-path-prefix=$(rustc --print sysroot)=/rust"
    )
    local build_command=(cargo zigbuild)
    case $plain in
    *-apple-*) build_command=(cargo build) ;;
    *-windows-*) build_command=(cargo build); command -v x86_64-w64-mingw32-gcc >/dev/null || return 77 ;;
    esac
    (
        cd "$source"
        CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$build CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; echo "${remap[*]}") \
            CFLAGS="-ffile-prefix-map=$source=/dualplane -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
            "${build_command[@]}" --profile dist --locked --quiet --target "$target" "$@" >&2
    ) || return
    echo "$build/$plain/dist"
}

CLI=(-p dualplane --no-default-features --features live,tokenizer)
SERVER=(-p dualplane-server)

# What fits on an on-call engineer's connection, and in a node's image pull; as .tar.xz holds it.
MOST=$((20 << 20))
MOST_COMPRESSED=$((8 << 20))

binaries() {
    local name from to size small code
    # shellcheck disable=SC2046
    [ $# -gt 0 ] || set -- $(targets)
    case " $* " in *" linux-"*) python_tools ;; esac
    for name in "$@"; do
        say "build $name"
        code=0
        from=$(build_one "$name" "$root" "$root/target" "${CLI[@]}") || code=$?
        if [ "$code" = 77 ]; then say "no linker for $name here: left out"; continue; fi
        [ "$code" = 0 ] || die "$name does not build"
        to=$(program "$name")
        mkdir -p "$(dirname "$to")"
        cp "$from/$(basename "$to")" "$to"
        size=$(wc -c <"$to")
        small=$(as_xz <"$to" | wc -c)
        say "$name: $((size / 1024)) KiB, compressed $((small / 1024)) KiB"
        [ "$size" -le "$MOST" ] || die "$name is larger than $((MOST >> 20)) MiB"
        [ "$small" -le "$MOST_COMPRESSED" ] || die "$name is larger than $((MOST_COMPRESSED >> 20)) MiB compressed"
        if serves "$name"; then
            from=$(build_one "$name" "$root" "$root/target" "${SERVER[@]}") || die "the server does not build for $name"
            to=$(server_program "$name")
            cp "$from/dualplane-server" "$to"
            say "the server for $name: $(($(wc -c <"$to") / 1024)) KiB"
        fi
    done
}

# A program of this name is of this machine's kind.
native() {
    case $1:$(uname -sm) in
    "linux-amd64"*":Linux x86_64" | "linux-arm64"*":Linux aarch64") ;;
    "darwin-amd64:Darwin x86_64" | "darwin-arm64:Darwin arm64") ;;
    *) return 1 ;;
    esac
}

# How a program of this name is started here, as words.
runner() {
    if native "$1"; then return; fi
    case $1:$(uname -sm) in
    "linux-arm64:Linux x86_64") echo "$(debian qemu-user-static)/usr/bin/qemu-aarch64-static" ;;
    "linux-arm64-glibc:Linux x86_64")
        echo "$(debian qemu-user-static)/usr/bin/qemu-aarch64-static -L $(debian libc6-arm64-cross)/usr/aarch64-linux-gnu"
        ;;
    *) return 77 ;;
    esac
}

check() {
    local name run said
    # shellcheck disable=SC2046
    [ $# -gt 0 ] || set -- $(built)
    [ $# -gt 0 ] || die "no program in $out/bin; dist/run binaries"
    for name in "$@"; do
        [ -e "$(program "$name")" ] || die "no $name in $out/bin; dist/run binaries $name"
        run=$(runner "$name") || { say "$name cannot be started here: not run"; continue; }
        # shellcheck disable=SC2086
        said=$($run "$(program "$name")" triage "$root/testdata/incidents/sglang-hicache-over-limit" -o json)
        [[ $said == *'"class":"host_oom_killed"'* || $said == *'"class": "host_oom_killed"'* ]] || die "$name judges otherwise"
        # shellcheck disable=SC2086
        said=$($run "$(program "$name")" plan Qwen/Qwen3-8B --gpu H100-80GB)
        [[ $said == *FITS* ]] || die "$name plans otherwise: $said"
        # shellcheck disable=SC2086
        [ "$($run "$(program "$name")" --version)" = "dualplane $version" ] || die "$name is another version"
        if [ -e "$(server_program "$name")" ]; then
            # shellcheck disable=SC2086
            [ "$($run "$(server_program "$name")" --version)" = "dualplane-server $version" ] || die "the server for $name is another version"
        fi
        say "$name runs"
    done
}

reproduce() {
    local name=${1:?a name of dist/targets} second first other
    python_tools
    first=$(program "$name")
    [ -e "$first" ] || binaries "$name"
    second=$(mktemp -d)
    git -C "$root" archive --prefix=elsewhere/ HEAD | tar -x -C "$second"
    other=$(build_one "$name" "$second/elsewhere" "$second/build" "${CLI[@]}")
    cmp "$first" "$other/$(basename "$first")" || die "$name: two builds differ"
    say "$name: two builds in two folders, the same bytes: $(sha256sum <"$first" | cut -c1-16)"
    rm -rf "$second"
}
