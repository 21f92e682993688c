#!/usr/bin/env bash
# The server's figures: ingest from 1,000 simulated agents into Postgres, its memory, a cold start with SQLite, and lists over
# many incidents. Usage: bench/server.sh [DEATHS]   (default 1000000). Needs Debian's package postgresql for the first part.
set -euo pipefail
cd "$(dirname "$0")/.."
deaths=${1:-1000000}
target=${CARGO_TARGET_DIR:-target}
cargo build -q --release --locked -p dualplane-server --bin dualplane-server --example load
server=$target/release/dualplane-server load=$target/release/examples/load
home=$(mktemp -d) pids=()
finish() {
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$home"
}
trap finish EXIT
chmod 755 "$home"

# $1: folder, then arguments. Sets url, pid and the milliseconds until it answers.
serve() {
  local began
  rm -f "$home/said"
  began=$(date +%s%N)
  "$server" serve --listen 127.0.0.1:0 --rate 1000000 --data "$@" 2>"$home/said" &
  pid=$!
  pids+=("$pid")
  until url=$(grep -s -o 'http://[0-9.:]*' "$home/said" | head -n 1) && [ -n "$url" ]; do
    kill -0 "$pid" || { cat "$home/said"; exit 1; }
    sleep 0.002
  done
  curl -s -o "$home/list" "$url/v1/incidents"
  ms=$((($(date +%s%N) - began) / 1000000))
}
rss() { awk '/^VmHWM/ { printf "%.0f MiB\n", $2 / 1024 }' "/proc/$1/status"; }

echo "== cold start with SQLite, until the first list is answered"
for n in 1 2 3 4 5; do
  serve "$home/cold$n"
  echo "$ms ms"
  kill "$pid" && wait "$pid" || true
done

bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
if [ -n "$bin" ]; then
  echo "== 1,000 agents into Postgres $("$bin/postgres" --version | grep -o '[0-9.]*' | head -n 1)"
  run=(env)
  if [ "$(id -u)" = 0 ]; then
    run=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  fi
  mkdir "$home/pg" && chmod 700 "$home/pg"
  [ "$(id -u)" != 0 ] || chown 65534:65534 "$home/pg"
  "${run[@]}" "$bin/initdb" -D "$home/pg/data" -U dualplane -A trust -E UTF8 --locale=C.UTF-8 >/dev/null
  "${run[@]}" "$bin/postgres" -D "$home/pg/data" -k "$home/pg" -c listen_addresses= >/dev/null 2>&1 &
  pids+=($!)
  until "$bin/pg_isready" -q -h "$home/pg"; do sleep 0.1; done
  serve "$home/data" --database-url "host=$home/pg user=dualplane dbname=postgres"
  "$load" agents "$url" 1000 20 1000
  echo "the server held at most $(rss "$pid")"
  "$load" agents "$url" 1000 10 4000
  echo "the server held at most $(rss "$pid")"
  kill "$pid" && wait "$pid" || true
fi

echo "== $deaths deaths in SQLite"
mkdir "$home/many"
"$load" fill "$home/many" "$deaths"
du -sh "$home/many" | cut -f1
serve "$home/many"
"$load" ask "$url" 200
echo "the server held at most $(rss "$pid")"
