# Images without a registry: a docker-archive is a tar of a layer, a config and a list of names.
# shellcheck shell=bash

# $1: file, $2: folder that becomes the only layer, $3: entrypoint as JSON, then the names.
docker_archive() {
    local out=$1 root=$2 entrypoint=$3 work digest tags
    shift 3
    work=$(mktemp -d)
    tar -C "$root" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$work/layer.tar" .
    digest=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
    cat >"$work/config.json" <<JSON
{"architecture":"$(dpkg --print-architecture)","os":"linux","config":{"Entrypoint":$entrypoint,"Env":["PATH=/usr/local/bin:/bin"]},
 "rootfs":{"type":"layers","diff_ids":["sha256:$digest"]}}
JSON
    tags=$(printf '"%s",' "$@")
    echo "[{\"Config\":\"config.json\",\"RepoTags\":[${tags%,}],\"Layers\":[\"layer.tar\"]}]" >"$work/manifest.json"
    tar -C "$work" -cf "$out" manifest.json config.json layer.tar
    rm -rf "$work"
}

build_images() {
    say "build the images"
    local root name
    root=$(mktemp -d)
    mkdir -p "$root"/{bin,etc,proc,sys,tmp,dev,usr/local/bin,www,logs}
    chmod 1777 "$root/tmp"
    echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
    cp "$(debian_dir)/bin/busybox" "$root/bin/busybox"
    for name in $("$root/bin/busybox" --list); do
        [ "$name" = busybox ] || ln -s busybox "$root/bin/$name"
    done
    docker_archive "$NEW/busybox.tar" "$root" '["/bin/sh"]' registry.local/busybox:1 || return
    cc -std=gnu11 -O2 -Wall -Wextra -static -o "$root/usr/local/bin/victim" "$E2E/victim/victim.c" || return
    # Under engines' names too: what a report calls the engine comes from the image.
    ln "$root/usr/local/bin/victim" "$root/usr/local/bin/vllm"
    docker_archive "$NEW/victim.tar" "$root" '["/usr/local/bin/victim"]' \
        registry.local/victim:1 registry.local/victim:2 \
        docker.io/vllm/vllm-openai:v0.10.2 docker.io/vllm/vllm-openai:v0.11.0 || return
    docker_archive "$NEW/pause.tar" "$root" '["/usr/local/bin/victim","sleep"]' registry.local/pause:1
    local ok=$?
    rm -rf "$root"
    return $ok
}
