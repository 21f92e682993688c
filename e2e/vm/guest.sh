# What a guest is made of: kernel, qemu and busybox of Debian, and programs of ours with the libraries they link.
# shellcheck shell=bash disable=SC2034

vm_dir() { echo "$CACHE/vm-$(hash_of "$VM/packages" "$VM/modules" /etc/debian_version)"; }

# Of qemu's libraries only those that the machine lacks are fetched. Nothing is installed.
fetch_vm() {
    local debs packages kernel
    mapfile -t packages < <(grep -v '^#' "$VM/packages")
    debs=$(mktemp -d)
    # apt's own user must be able to write there.
    chmod 755 "$debs"
    fetch() {
        kernel=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^ *Depends: //p' | head -1)
        [ -n "$kernel" ] && (cd "$debs" && apt-get -qq download "$kernel") \
            && apt-get -qq install -y --reinstall --download-only --no-install-recommends \
                -o Debug::NoLocking=1 -o "Dir::Cache::archives=$debs" "${packages[@]}"
    } 2>/dev/null
    say "fetch a kernel, ${packages[*]}"
    mkdir "$debs/partial"
    fetch >/dev/null || { apt-get -qq update >/dev/null && fetch >/dev/null; } || { rm -rf "$debs"; return 1; }
    for deb in "$debs"/*.deb; do dpkg -x "$deb" "$NEW" || return; done
    mkdir "$NEW/modules"
    while read -r module; do
        cp "$NEW"/lib/modules/*/kernel/"$module".ko "$NEW/modules/" || return
    done < <(grep -v '^#' "$VM/modules")
    rm -rf "$debs" "$NEW"/lib/modules "$NEW"/usr/share/{doc,man,locale,icons}
}

# What starts qemu from the cache; in QEMU.
find_qemu() {
    local dir
    dir=$(vm_dir)
    QEMU=(env "LD_LIBRARY_PATH=$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
        "$dir/usr/bin/qemu-system-x86_64" -L "$dir/usr/share/qemu" -L "$dir/usr/share/seabios")
}

build_vm() {
    [ "$(uname -sm)" = "Linux x86_64" ] || cannot "guests are x86_64, this is $(uname -sm)"
    need_commands apt-get dpkg cargo ldd
    find_qemu
    # A library that the machine had when this was fetched may be gone.
    [ ! -e "$(vm_dir)" ] || "${QEMU[@]}" --version >/dev/null 2>&1 || rm -rf "$(vm_dir)"
    once "$(vm_dir)" fetch_vm
    "${QEMU[@]}" --version >/dev/null || die "the qemu in $(vm_dir) does not start"
    touch "$(vm_dir)"
}

# $1: name in `programs`. Builds it as `programs` says and prints where it lies.
program() {
    local how path
    how=$(sed -n "s/^$1 \+//p" "$VM/programs")
    # What is tested is what is published, where that is given.
    if [ "$1" = dualplane ] && [ -n "${DUALPLANE:-}" ]; then echo "$DUALPLANE"; return; fi
    case $how in
    "") die "no program $1 in e2e/vm/programs" ;;
    cc\ *)
        path=$OUT/$1
        # shellcheck disable=SC2086
        (cd "$ROOT" && cc -std=gnu11 -O2 -Wall -Wextra -static -o "$path" ${how#cc })
        ;;
    *)
        # shellcheck disable=SC2086
        path=$(cd "$ROOT" && cargo $how --locked --message-format=json 2>"$OUT/cargo.log" | grep "\"name\":\"$1\"" \
            | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)
        ;;
    esac
    [ -x "$path" ] || { [ ! -e "$OUT/cargo.log" ] || cat "$OUT/cargo.log" >&2; die "no program $1: $how"; }
    echo "$path"
}

# $1: program, $2: root of a guest. Each library lies where the loader of the host found it.
libraries() {
    { ldd "$1" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r path; do
        [ -e "$2$path" ] || { mkdir -p "$2${path%/*}" && cp -L "$path" "$2$path"; }
    done
}

# $1: case. Makes $OUT/CASE.cpio: nothing is compressed, which a guest without hardware help would pay for.
make_guest() {
    local case=$1 root name path
    root=$(mktemp -d)
    mkdir -p "$root"/{bin,dev,etc,lib64,out,proc,run,sys,tmp,var}
    cp "$(vm_dir)/bin/busybox" "$root/bin/"
    for name in $("$root/bin/busybox" --list); do
        [ "$name" = busybox ] || ln -s busybox "$root/bin/$name"
    done
    cp "$VM/init" "$root/init"
    cp "$VM/cases/$case" "$root/case"
    chmod 755 "$root/init" "$root/case"
    echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
    for name in $(head_of "$case" programs); do
        path=$(program "$name") || exit
        strip --strip-debug -o "$root/bin/$name" "$path" 2>/dev/null || cp "$path" "$root/bin/$name"
        libraries "$path" "$root"
    done
    for name in $(head_of "$case" debian); do
        path=$(vm_dir)/$name
        [ -e "$path" ] || die "no $name in the packages of e2e/vm/packages"
        if [ -x "$path" ]; then cp "$path" "$root/bin/" && libraries "$path" "$root"; else mkdir -p "$root/${name%/*}" && cp "$path" "$root/$name"; fi
    done
    for name in $(head_of "$case" files); do
        (cd "$ROOT" && mkdir -p "$root/files" && cp -r --parents "$name" "$root/files/") || die "no $name for $case"
    done
    (cd "$root" && find . | "$root/bin/busybox" cpio -o -H newc -R 0:0 2>/dev/null) >"$OUT/$case.cpio" \
        || die "no initramfs for $case"
    rm -rf "$root"
}
