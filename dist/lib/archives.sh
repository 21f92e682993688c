# What people unpack: program, manual, completions, licence.
# shellcheck shell=bash disable=SC2154

# The program that can say its own manual here.
own_program() {
    local name
    for name in $(built); do
        if native "$name"; then program "$name"; return; fi
    done
    die "no program of this machine's kind in $out/bin; dist/run binaries linux-amd64"
}

# Manual and completions, in a folder that is printed.
pages() {
    local dir=$out/pages own
    own=$(own_program)
    rm -rf "$dir"
    mkdir -p "$dir/completions"
    "$own" man --dir "$dir/man"
    "$own" completions bash >"$dir/completions/dualplane.bash"
    "$own" completions zsh >"$dir/completions/_dualplane"
    "$own" completions fish >"$dir/completions/dualplane.fish"
    "$own" completions powershell >"$dir/completions/dualplane.ps1"
    echo "$dir"
}

# The server alone: who installs it has the other program already, or needs none.
server_archive() {
    local work
    work=$(mktemp -d)
    cp "$(server_program "$1")" "$root/LICENSE" "$root/docs/server.md" "$work/"
    packed "$work" "dualplane-server-v$version-$1"
    rm -rf "$work"
}

# $1: folder, $2: name. Twice: krew takes gzip alone, and everything else the smaller one.
packed() {
    (cd "$1" && same_tar "$1" -- *) >"$out/$2.tar"
    gzip -n -9 <"$out/$2.tar" >"$out/$2.tar.gz"
    as_xz <"$out/$2.tar" >"$out/$2.tar.xz"
    rm "$out/$2.tar"
    say "$2: .tar.xz $(($(wc -c <"$out/$2.tar.xz") / 1024)) KiB, .tar.gz $(($(wc -c <"$out/$2.tar.gz") / 1024)) KiB"
}

archives() {
    local name pages work file
    pages=$(pages)
    for name in $(built); do
        work=$(mktemp -d)
        cp "$(program "$name")" "$root/LICENSE" "$root/README.md" "$root/CHANGELOG.md" "$work/"
        cp -r "$pages/man" "$pages/completions" "$work/"
        case $name in
        windows-*)
            file=$out/dualplane-v$version-$name.zip
            rm -f "$file"
            python3 "$here/same_zip.py" "$file" "$work"
            say "$(basename "$file"): $(($(wc -c <"$file") / 1024)) KiB"
            ;;
        *) packed "$work" "dualplane-v$version-$name" ;;
        esac
        rm -rf "$work"
        [ ! -e "$(server_program "$name")" ] || server_archive "$name"
    done
}
