# .deb and .rpm of the programs that load NVML, and of the server, each with a systemd unit that is not enabled.
# shellcheck shell=bash disable=SC2154

CARGO_DEB=3.8.0
CARGO_GENERATE_RPM=0.21.1

packages() {
    # Where the manifest of the crate looks for them.
    local name pages stage=$root/target/published/stage
    cargo_tool cargo-deb "$CARGO_DEB"
    cargo_tool cargo-generate-rpm "$CARGO_GENERATE_RPM"
    pages=$(pages)
    for name in linux-amd64-glibc linux-arm64-glibc; do
        [ -e "$(program "$name")" ] || continue
        rm -rf "$stage"
        mkdir -p "$stage"
        cp -r "$pages/." "$(program "$name")" "$stage/"
        package_of dualplane "$name"
        if [ -e "$(server_program "$name")" ]; then
            cp "$(server_program "$name")" "$stage/"
            package_of dualplane-server "$name"
        fi
    done
    rm -rf "$stage"
    package_runs dualplane dualplane-agent
    package_runs dualplane-server dualplane-server
}

# $1: crate, $2: target. Both packages of what lies in the stage.
package_of() {
    local crate=$1 name=$2 arch
    case $name in *amd64*) arch=x86_64 ;; *) arch=aarch64 ;; esac
    (
        cd "$root"
        cargo deb --quiet --locked -p "$crate" --no-build --no-strip --target "$arch-unknown-linux-gnu" \
            --output "$out/${crate}_${version}_${name:6:5}.deb" >/dev/null
        cargo generate-rpm --package "crates/$crate" --arch "$arch" --payload-compress gzip \
            --source-date "$SOURCE_DATE_EPOCH" --output "$out/$crate-$version.$arch.rpm"
    )
    say "${crate}_${version}_${name:6:5}.deb, $crate-$version.$arch.rpm"
}

# $1: crate, $2: unit. Installed below a folder, as dpkg lays it out, the program runs.
package_runs() {
    local deb work
    deb=$out/$1_${version}_$(dpkg --print-architecture 2>/dev/null || echo none).deb
    [ -e "$deb" ] || { say "no package of $1 for this machine's architecture"; return; }
    work=$(mktemp -d)
    dpkg -x "$deb" "$work"
    [ "$("$work/usr/bin/$1" --version)" = "$1 $version" ] || die "the packaged $1 does not run"
    [ -e "$work/usr/lib/systemd/system/$2.service" ] || [ -e "$work/lib/systemd/system/$2.service" ] || die "no unit in the package of $1"
    rm -rf "$work"
}
