# PyPI wheels that carry the program: `uvx dualplane triage .`, `pip install dualplane`. Those for Linux with glibc come twice:
# for CPython 3.10 and later the module `dualplane` (MemoryGuard) is in them as well.
# shellcheck shell=bash disable=SC2154

# What pip calls a target. The static program runs beside glibc as well; where both fit, pip takes the one for glibc.
wheel_tag() {
    case $1 in
    linux-amd64) echo musllinux_1_1_x86_64 ;;
    linux-arm64) echo musllinux_1_1_aarch64 ;;
    linux-amd64-glibc) echo manylinux_2_17_x86_64.manylinux2014_x86_64 ;;
    linux-arm64-glibc) echo manylinux_2_17_aarch64.manylinux2014_aarch64 ;;
    windows-amd64) echo win_amd64 ;;
    darwin-amd64) echo macosx_11_0_x86_64 ;;
    darwin-arm64) echo macosx_11_0_arm64 ;;
    *) die "no wheel for $1" ;;
    esac
}

wheels() {
    local name work
    python_tools
    mkdir -p "$out/wheels"
    for name in $(built); do
        work=$(mktemp -d)
        cp "$here/wheel/pyproject.toml" "$here/wheel/hatch_build.py" "$root/README.md" "$root/LICENSE" "$work/"
        sed -i.was "s/@VERSION@/$version/; s/@PROGRAM@/$(basename "$(program "$name")")/g" "$work/pyproject.toml"
        cp "$(program "$name")" "$work/"
        (cd "$work" && WHEEL_TAG="py3-none-$(wheel_tag "$name")" hatchling build -t wheel -d "$out/wheels" >/dev/null)
        rm -rf "$work"
        case $name in linux-*-glibc) module_wheel "$name" ;; esac
    done
    say "$(find "$out/wheels" -name '*.whl' | wc -l) wheels"
    wheel_runs
}

# The module of Python servers beside the program: one file for all interpreters from 3.10 on.
module_wheel() {
    local name=$1 work target
    target=$(target_of "$name")
    target=${target%.2.17}
    rustup target add "$target" >/dev/null 2>&1 || true
    work=$(mktemp -d)
    # Its lock follows the other crates': they may have changed since it was written.
    (
        cd "$root/python"
        CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$root/target/python CARGO_ENCODED_RUSTFLAGS=$(
            printf '%s\x1f%s\x1f%s' "--remap-path-prefix=$root=/dualplane" \
                "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" "--remap-path-prefix=$(rustc --print sysroot)=/rust"
        ) maturin build --quiet --release --zig --target "$target" --compatibility manylinux_2_17 --out "$work" >&2
    ) || die "the module for Python does not build for $name"
    python3 "$here/wheel/join.py" "$work"/dualplane-"$version"-*.whl "$(program "$name")" "$root/LICENSE" "$out/wheels"
    rm -rf "$work"
}

# Installed as a user would, in an environment of its own.
wheel_runs() {
    local work found
    work=$(mktemp -d)
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" --quiet --disable-pip-version-check install --no-index --find-links "$out/wheels" dualplane \
        || { rm -rf "$work"; say "no wheel for this machine"; return; }
    found=$("$work/venv/bin/dualplane" --version)
    # A wheel with the module is taken where there is one for this interpreter.
    if ls "$out"/wheels/dualplane-*-abi3-*"$(uname -m)"*.whl >/dev/null 2>&1 && python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
        "$work/venv/bin/python" -c 'import dualplane; print(dualplane.MemoryGuard().snapshot())' >/dev/null || die "the module of the installed wheel does not load"
    fi
    rm -rf "$work"
    [ "$found" = "dualplane $version" ] || die "the installed wheel says $found"
    say "pip install dualplane: $found"
}
