# Images without a registry: a docker-archive is a tar of a layer, a config and a list of names.
# shellcheck shell=bash

# $1: name of the image, $2: layer, $3: entrypoint as JSON. Into $NEW.
# The name stands in the config too: images of one id have one name in a pod's status, whichever was asked for.
docker_archive() {
    local work digest
    work=$(mktemp -d)
    digest=$(sha256sum "$2" | cut -d' ' -f1)
    cp "$2" "$work/layer.tar"
    cat >"$work/config.json" <<JSON
{"architecture":"$(dpkg --print-architecture)","os":"linux",
 "config":{"Entrypoint":$3,"Env":["PATH=/usr/local/bin:/bin"],"Labels":{"name":"$1"}},
 "rootfs":{"type":"layers","diff_ids":["sha256:$digest"]}}
JSON
    echo "[{\"Config\":\"config.json\",\"RepoTags\":[\"$1\"],\"Layers\":[\"layer.tar\"]}]" >"$work/manifest.json"
    tar -C "$work" -cf "$NEW/${1//[\/:]/_}.tar" manifest.json config.json layer.tar
    rm -rf "$work"
}

# $1: file, $2: folder
layer() { tar -C "$2" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$1" .; }

build_images() {
    say "build the images"
    local work root name
    work=$(mktemp -d)
    root=$work/root
    mkdir -p "$root"/{bin,etc,proc,sys,tmp,dev,usr/local/bin,www,logs}
    chmod 1777 "$root/tmp"
    echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
    cp "$(debian_dir)/bin/busybox" "$root/bin/busybox"
    for name in $("$root/bin/busybox" --list); do
        [ "$name" = busybox ] || ln -s busybox "$root/bin/$name"
    done
    layer "$work/busybox.tar" "$root"
    cc -std=gnu11 -O2 -Wall -Wextra -static -o "$root/usr/local/bin/victim" "$E2E/victim/victim.c" || return
    # Under an engine's name too: what a report calls the engine comes from image and command.
    ln "$root/usr/local/bin/victim" "$root/usr/local/bin/vllm"
    layer "$work/victim.tar" "$root"

    docker_archive registry.local/busybox:1 "$work/busybox.tar" '["/bin/sh"]'
    docker_archive registry.local/pause:1 "$work/victim.tar" '["/usr/local/bin/victim","sleep"]'
    for name in registry.local/victim:1 registry.local/victim:2 docker.io/vllm/vllm-openai:v0.10.2 \
        docker.io/vllm/vllm-openai:v0.11.0 docker.io/lmsysorg/sglang:v0.5.8 \
        ghcr.io/huggingface/text-embeddings-inference:1.8 nvcr.io/nvidia/k8s/dcgm-exporter:4.2.3-4.1.1-ubuntu22.04; do
        docker_archive "$name" "$work/victim.tar" '["/usr/local/bin/victim"]'
    done
    rm -rf "$work"
}
