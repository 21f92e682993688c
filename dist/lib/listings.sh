# What says what was published: parts, sums, and the two package managers that take sums.
# shellcheck shell=bash disable=SC2154

CARGO_CYCLONEDX=0.5.9
releases=https://github.com/dualplane/dualplane/releases/download/v$version

# $1: file of $out. Zeros for one that was not built here: krew and Homebrew refuse these.
sum_of() {
    if [ -e "$out/$1" ]; then sha256sum "$out/$1" | cut -c1-64; else printf '0%.0s' {1..64}; fi
}

# Crates in the program, with versions, licences and sums (CycloneDX 1.5).
sbom() {
    cargo_tool cargo-cyclonedx "$CARGO_CYCLONEDX"
    sbom_of dualplane --no-default-features --features live,tokenizer
    sbom_of dualplane-server
}

# $1: crate, the rest: its features.
sbom_of() {
    local crate=$1
    shift
    (
        cd "$root"
        # It writes beside each manifest.
        cargo cyclonedx --quiet --manifest-path "crates/$crate/Cargo.toml" "$@" \
            --format json --spec-version 1.5 --override-filename dualplane-sbom.tmp
        mv "crates/$crate/dualplane-sbom.tmp.json" "$out/$crate-v$version.cdx.json"
        find crates -name 'dualplane-sbom.tmp.json' -delete
    )
    python3 - "$out/$crate-v$version.cdx.json" "$root" <<'PY'
import json, sys
found = json.load(open(sys.argv[1]))
# A number and a moment of their own would make two listings of one program differ.
found.pop("serialNumber", None)
found["metadata"].pop("timestamp", None)
assert len(found["components"]) > 100, "the listing lacks crates"
# Our own crates bear the folder that they were built in.
text = json.dumps(found, indent=1, sort_keys=True).replace(sys.argv[2], "/dualplane")
open(sys.argv[1], "w").write(text + "\n")
PY
}

# deploy/krew/dualplane.yaml with this version and true sums.
krew() {
    python3 - "$root/deploy/krew/dualplane.yaml" "$out" "$version" <<'PY'
import hashlib, pathlib, re, sys
text, out, version = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2]), sys.argv[3]
text = re.sub(r"^  version: v.*$", f"  version: v{version}", text, flags=re.M)
text = re.sub(r"v\d+\.\d+\.\d+(?=[/-])", f"v{version}", text)
def filled(found):
    file = out / found[2]
    return found[1] + found[2] + found[3] + (hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else "0" * 64)
text = re.sub(r"(uri: \S*/)(\S+)(\n\s+sha256: \")([0-9a-f]{64})", filled, text)
(out / "dualplane-krew.yaml").write_text(text)
PY
}

brew() {
    local os arch words
    {
        echo "# brew install dualplane/tap/dualplane"
        echo "class Dualplane < Formula"
        echo '  desc "Names the memory plane that killed a GPU model-serving pod"'
        echo '  homepage "https://github.com/dualplane/dualplane"'
        echo "  version \"$version\""
        echo '  license "Apache-2.0"'
        for os in darwin linux; do
            echo
            [ $os = darwin ] && echo "  on_macos do" || echo "  on_linux do"
            for arch in amd64 arm64; do
                [ $arch = amd64 ] && words=on_intel || words=on_arm
                echo "    $words do"
                echo "      url \"$releases/dualplane-v$version-$os-$arch.tar.xz\""
                echo "      sha256 \"$(sum_of "dualplane-v$version-$os-$arch.tar.xz")\""
                echo "    end"
            done
            echo "  end"
        done
        cat <<'RUBY'

  def install
    bin.install "dualplane"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/dualplane.bash" => "dualplane"
    zsh_completion.install "completions/_dualplane"
    fish_completion.install "completions/dualplane.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dualplane --version")
  end
end
RUBY
    } >"$out/dualplane.rb"
}

listings() {
    sbom
    krew
    brew
    cp "$root/dist/install.sh" "$out/"
    (
        cd "$out"
        find . -maxdepth 2 -type f \( -name '*.tar.gz' -o -name '*.tar.xz' -o -name '*.zip' -o -name '*.deb' -o -name '*.rpm' -o -name '*.whl' \
            -o -name '*-image.tar' -o -name '*.cdx.json' -o -name '*.rb' -o -name '*-krew.yaml' -o -name install.sh \) \
            | sed 's|^\./||' | sort | xargs sha256sum >SHA256SUMS
    )
    say "SHA256SUMS of $(wc -l <"$out/SHA256SUMS") files"
    install_runs
}

# install.sh, from a server as a user has it: a program that runs, and none where the sum is wrong.
install_runs() {
    local work port server
    [ "$(uname)" = Linux ] || return 0
    work=$(mktemp -d)
    mkdir -p "$work/v$version"
    cp "$out"/*.tar.[gx]z "$out/SHA256SUMS" "$work/v$version/"
    port=$((20000 + RANDOM % 20000))
    python3 -m http.server --bind 127.0.0.1 --directory "$work" "$port" >/dev/null 2>&1 &
    server=$!
    # Also where a step below fails.
    # shellcheck disable=SC2064
    trap "kill $server 2>/dev/null || true; rm -rf '$work'" EXIT
    until curl -fs "http://127.0.0.1:$port/" >/dev/null; do sleep 0.1; done
    export DUALPLANE_RELEASES=http://127.0.0.1:$port DUALPLANE_VERSION=$version
    sh "$out/install.sh" "$work/bin" >/dev/null
    [ "$("$work/bin/dualplane" --version)" = "dualplane $version" ] || die "install.sh installed something else"
    for file in "$work/v$version"/*.tar.[gx]z; do printf x >>"$file"; done
    if sh "$out/install.sh" "$work/other" >/dev/null 2>&1; then die "install.sh takes a file with a wrong sum"; fi
    [ ! -e "$work/other/dualplane" ] || die "install.sh leaves a program behind whose sum was wrong"
    say "install.sh installs, and refuses what has another sum"
}
