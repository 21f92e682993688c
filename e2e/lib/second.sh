# A second node with cgroup v2: a virtual machine that joins the running cluster. Its pods have no network of their own.
# shellcheck shell=bash disable=SC2153

SECOND=gpu-node-2
# An address of our bridge that qemu forwards into the guest; there it is one of the loopback.
SECOND_IP=10.245.0.1
# The kubelet's, and the agent's in the guest.
SECOND_PORTS="10250 10979"

second_files() {
    local root=$1 pki=$STATE/pki debian bin library name
    debian=$(debian_dir)
    library=$(dirname "$(find "$debian" -name 'libseccomp.so.2' | head -1)")
    mkdir -p "$root"/{bin,etc,lib64,modules,node,proc,sys,dev,run,tmp,var,images,opt/cni/bin,etc/cni/net.d}
    cp "$(vm_dir)/bin/busybox" "$root/bin/"
    for name in $("$root/bin/busybox" --list); do
        [ "$name" = busybox ] || ln -s busybox "$root/bin/$name"
    done
    cp "$(vm_dir)"/modules/*.ko "$root/modules/"
    cp "$VM/modules" "$root/modules/list"
    cp "$(images_dir)"/*.tar "$root/images/"
    cp "$debian/usr/lib/cni/loopback" "$root/opt/cni/bin/"
    cp "$VM/cni-none" "$root/opt/cni/bin/none"
    cp "$(kube_dir)/kubelet" "$root/bin/"
    for bin in "$debian"/usr/bin/{containerd,containerd-shim-runc-v2,ctr} "$debian/usr/sbin/runc" "$1.dualplane"; do
        name=${bin##*/}
        strip --strip-debug -o "$root/bin/${name##*.}" "$bin" 2>/dev/null || cp "$bin" "$root/bin/${name##*.}"
        # Each library lies where the loader of the host found it, those of our own folder where it looks by itself.
        { LD_LIBRARY_PATH=$library ldd "$bin" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r path; do
            local there=$root$path
            [ "${path%/*}" != "$library" ] || there=$root/lib/x86_64-linux-gnu/${path##*/}
            [ -e "$there" ] || { mkdir -p "${there%/*}" && cp -L "$path" "$there"; }
        done
    done
    echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
    cp "$VM/node-init" "$root/node-init"
    chmod 755 "$root/node-init"
    echo '{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}' >"$root/etc/cni/net.d/10-none.conflist"
    # A tmpfs: containers cannot pivot away from the first root of a kernel.
    cat >"$root/init" <<'SH'
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mkdir /real
/bin/busybox mount -t tmpfs -o size=1500m real /real
cd / && /bin/busybox cp -a bin etc lib lib64 modules node images opt usr node-init run tmp var /real/ 2>/dev/null
/bin/busybox mkdir -p /real/proc /real/sys /real/dev
words=$(/bin/busybox cat /proc/cmdline)
words=${words##*SECOND=}
/bin/busybox umount /proc
exec /bin/busybox switch_root /real /node-init ${words%% *} ${words##*IP=}
SH
    chmod 755 "$root/init"
    cp "$pki/ca.crt" "$pki/second-server.crt" "$pki/second-server.key" "$root/node/"
    cp "$STATE/second.kubeconfig" "$root/node/kubelet.kubeconfig"
    cp "$STATE/admin.kubeconfig" "$root/node/agent.kubeconfig"
    sed -e "s|$NODE_IP|0.0.0.0|" -e "s|$pki/kubelet-server|/node/second-server|" -e "s|$pki/ca.crt|/node/ca.crt|" \
        -e "s|$STATE/run/containerd.sock|/run/containerd/containerd.sock|" -e "s/^staticPodPath.*/registerWithTaints: [{key: dualplane.dev\/second, effect: NoSchedule}]/" \
        "$STATE/kubelet.yaml" >"$root/node/kubelet.yaml"
    cat >"$root/node/containerd.toml" <<'TOML'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.local/pause:1"
  disable_apparmor = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
TOML
}

second_ready() { [ "$(kc get node $SECOND -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }

# $DUALPLANE is the agent in the guest; else the release build.
second_up() {
    alive kube-apiserver || die "no cluster is up: e2e/run up"
    alive second && { say "$SECOND is up"; return; }
    build_vm
    local root=$STATE/second binary=${DUALPLANE:-$E2E/../target/release/dualplane} port forwards=''
    [ -x "$binary" ] || die "no $binary: cargo build --release -p dualplane, or DUALPLANE=FILE"
    certificate second-server "/O=system:nodes/CN=system:node:$SECOND" "DNS:$SECOND,IP:$SECOND_IP"
    certificate second "/O=system:nodes/CN=system:node:$SECOND"
    kubeconfig "$STATE/second.kubeconfig" second "$API"
    ip addr replace $SECOND_IP/32 dev $BRIDGE
    # qemu hands the caller's address on: from this one itself the guest would take it for its own.
    ip route replace local $SECOND_IP dev $BRIDGE table local proto kernel scope host src $NODE_IP
    rm -rf "$root"
    cp "$binary" "$root.dualplane"
    second_files "$root"
    (cd "$root" && find . | bin/busybox cpio -o -H newc -R 0:0 2>/dev/null) >"$STATE/second.cpio" || die "no initramfs"
    rm -rf "$root" "$root.dualplane"
    for port in $SECOND_PORTS; do forwards+=",hostfwd=tcp:$SECOND_IP:$port-:$port"; done
    background second "${QEMU[@]}" -accel tcg,thread=multi -cpu max -smp 2 -m 3072 \
        -nodefaults -no-user-config -no-reboot -display none -kernel "$(vm_dir)"/boot/vmlinuz-* -initrd "$STATE/second.cpio" \
        -append "console=ttyS0 loglevel=3 panic=-1 random.trust_cpu=on SECOND=$SECOND IP=$SECOND_IP" \
        -serial stdio -netdev "user,id=net$forwards" -device virtio-net-pci,netdev=net,romfile=
    say "$SECOND boots, $STATE/log/second.log"
    until_true 300 "Ready $SECOND" second_ready || die "see $STATE/log/second.log"
    say "$SECOND is up"
}

second_down() {
    stop second -KILL
    kc delete node $SECOND --ignore-not-found >/dev/null 2>&1
    ip addr del $SECOND_IP/32 dev $BRIDGE 2>/dev/null
}
