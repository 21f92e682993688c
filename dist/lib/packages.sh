# .deb and .rpm of the programs that load NVML, with the agent as a systemd unit that is not enabled.
# shellcheck shell=bash disable=SC2154

CARGO_DEB=3.8.0
CARGO_GENERATE_RPM=0.21.1

packages() {
    # Where the manifest of the crate looks for them.
    local name pages arch stage=$root/target/published/stage
    cargo_tool cargo-deb "$CARGO_DEB"
    cargo_tool cargo-generate-rpm "$CARGO_GENERATE_RPM"
    pages=$(pages)
    for name in linux-amd64-glibc linux-arm64-glibc; do
        [ -e "$(program "$name")" ] || continue
        rm -rf "$stage"
        mkdir -p "$stage"
        cp -r "$pages/." "$(program "$name")" "$stage/"
        case $name in *amd64*) arch=x86_64 ;; *) arch=aarch64 ;; esac
        (
            cd "$root"
            cargo deb --quiet --locked -p dualplane --no-build --no-strip --target "$arch-unknown-linux-gnu" \
                --output "$out/dualplane_${version}_${name:6:5}.deb" >/dev/null
            cargo generate-rpm --package crates/dualplane --arch "$arch" --payload-compress gzip \
                --source-date "$SOURCE_DATE_EPOCH" --output "$out/dualplane-$version.$arch.rpm"
        )
        say "dualplane_${version}_${name:6:5}.deb, dualplane-$version.$arch.rpm"
    done
    rm -rf "$stage"
    package_runs
}

# Installed below a folder, as dpkg lays it out, the program runs.
package_runs() {
    local deb work
    deb=$out/dualplane_${version}_$(dpkg --print-architecture 2>/dev/null || echo none).deb
    [ -e "$deb" ] || { say "no package of this machine's architecture"; return; }
    work=$(mktemp -d)
    dpkg -x "$deb" "$work"
    [ "$("$work/usr/bin/dualplane" --version)" = "dualplane $version" ] || die "the packaged program does not run"
    [ -e "$work/usr/lib/systemd/system/dualplane-agent.service" ] || [ -e "$work/lib/systemd/system/dualplane-agent.service" ] \
        || die "no unit in the package"
    rm -rf "$work"
}
