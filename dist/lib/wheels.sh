# PyPI wheels that carry the program: `uvx dualplane triage .`, `pip install dualplane`.
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
    done
    say "$(find "$out/wheels" -name '*.whl' | wc -l) wheels"
    wheel_runs
}

# Installed as a user would, in an environment of its own.
wheel_runs() {
    local work found
    work=$(mktemp -d)
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" --quiet --disable-pip-version-check install --no-index --find-links "$out/wheels" dualplane \
        || { rm -rf "$work"; say "no wheel for this machine"; return; }
    found=$("$work/venv/bin/dualplane" --version)
    rm -rf "$work"
    [ "$found" = "dualplane $version" ] || die "the installed wheel says $found"
    say "pip install dualplane: $found"
}
