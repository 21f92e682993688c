#!/usr/bin/env bash
# The guard beside nginx and HAProxy as plain proxies (and vllm-router, sglang-router with ROUTERS=1) before the same trivial
# server, in turns in one run: added latency at a given rate, throughput, memory with open streams, and how soon the server hears of a
# caller that goes away.
# Usage: bench/guard.sh [PROGRAM=target/release/dualplane] [TURNS=3] [RATE=1000] [SECONDS=5] [STREAMS=5000]
# TURNS=0 measures memory and callers that go away alone; STREAMS=0 leaves them out.
# What is measured is what a request of 300 bytes costs. Ratios and differences of one run count: the machine may be shared.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-target/release/dualplane} turns=${2:-3} rate=${3:-1000} seconds=${4:-5} streams=${5:-5000}
dir=$(mktemp -d)
tools=${BENCH_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/dualplane/bench-guard}
pids=()
# Whatever a process started, and itself.
tree() { echo "$1"; local p; for p in $(pgrep -P "$1"); do tree "$p"; done; }
trap 'for p in "${pids[@]}"; do kill $(tree "$p") 2>/dev/null || true; done; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
if ! [ -x "$tools/root/usr/bin/h2load" ]; then
  mkdir -p "$tools"
  (cd "$tools" && apt-get download -qq nghttp2-client nginx haproxy liblua5.3-0 libev4 libc-ares2 libjemalloc2 libpcre2-8-0 \
    libnghttp2-14 libopentracing-c-wrapper0 libopentracing1 && for d in *.deb; do dpkg -x "$d" root; done)
fi
in_tools() { LD_LIBRARY_PATH=$tools/root/usr/lib/x86_64-linux-gnu "$@"; }
nginx=$tools/root/usr/sbin/nginx haproxy=$tools/root/usr/sbin/haproxy h2load=$tools/root/usr/bin/h2load
ulimit -n 65536 2>/dev/null || true

body='{"model":"m","messages":[{"role":"user","content":"Say a word about the memory of this server and stop."}],"max_tokens":16}'
echo "$body" >"$dir/body.json"
answer='{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"word"}}],"usage":{"prompt_tokens":14,"completion_tokens":1}}'
# The server: nginx that answers without a look at the body.
cat >"$dir/backend.conf" <<CONF
daemon off; worker_processes 1; pid $dir/backend.pid; error_log $dir/backend.log;
events { worker_connections 20000; }
http { access_log off; keepalive_requests 1000000; client_body_temp_path $dir/b1; proxy_temp_path $dir/b2; fastcgi_temp_path $dir/b3; uwsgi_temp_path $dir/b4; scgi_temp_path $dir/b5;
  server { listen 127.0.0.1:18600; location / { default_type application/json; return 200 '$answer'; } } }
CONF
# As a proxy.
cat >"$dir/nginx.conf" <<CONF
daemon off; worker_processes 2; pid $dir/nginx.pid; error_log $dir/nginx.log;
events { worker_connections 20000; }
http { access_log off; keepalive_requests 1000000; client_body_temp_path $dir/n1; proxy_temp_path $dir/n2; fastcgi_temp_path $dir/n3; uwsgi_temp_path $dir/n4; scgi_temp_path $dir/n5;
  upstream b { server 127.0.0.1:18600; keepalive 128; }
  server { listen 127.0.0.1:18601; location / { proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
  upstream s { server 127.0.0.1:18610; }
  server { listen 127.0.0.1:18611; location / { proxy_pass http://s; proxy_http_version 1.1; proxy_buffering off; proxy_read_timeout 600; } } }
CONF
cat >"$dir/haproxy.cfg" <<CONF
global
  maxconn 9000
  nbthread 2
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
frontend f
  bind 127.0.0.1:18602
  default_backend b
backend b
  server b 127.0.0.1:18600
frontend g
  bind 127.0.0.1:18612
  default_backend s
backend s
  server s 127.0.0.1:18610
CONF
# A server of streams: one event, then it holds; it notes when a reader went away.
cat >"$dir/streams.py" <<'PY'
import asyncio, sys, time
gone = open(sys.argv[1], "a")
async def serve(r, w):
    try:
        head = await r.readuntil(b"\r\n\r\n")
        if b"POST" not in head[:5]:
            w.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"); await w.drain(); w.close(); return
        w.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nf\r\ndata: {\"a\":1}\n\n\r\n"); await w.drain()
        await r.read(1 << 20)
        while await r.read(1 << 16): pass
    except Exception: pass
    gone.write(f"{time.monotonic()}\n"); gone.flush()
    w.close()
async def main():
    s = await asyncio.start_server(serve, "127.0.0.1", 18610, backlog=8192)
    await s.serve_forever()
asyncio.run(main())
PY
cat >"$dir/open.py" <<'PY'
import asyncio, os, sys
port, n, pids = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
body = b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":4,"stream":true}'
def rss():
    total = 0
    for pid in pids:
        try: lines = open(f"/proc/{pid}/status").readlines()
        except FileNotFoundError: continue  # a shell that listed the others
        total += sum(int(l.split()[1]) for l in lines if l.startswith("VmRSS"))
    return total
async def one(gate):
    async with gate:
        r, w = await asyncio.open_connection("127.0.0.1", port, limit=4096)
        w.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await asyncio.wait_for(r.readuntil(b"data:"), 60)
        return r, w
async def main():
    gate = asyncio.Semaphore(64)
    all = await asyncio.gather(*(one(gate) for _ in range(n)), return_exceptions=True)
    good = [a for a in all if not isinstance(a, BaseException)]
    await asyncio.sleep(1)
    print(f"{len(good)} {rss()/1024:.1f}")
asyncio.run(main())
PY
cat >"$dir/cancel.py" <<'PY'
import socket, sys, time
port, n, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
body = b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":4,"stream":true}'
took = []
for _ in range(n):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    got = b""
    while b"data:" not in got: got += s.recv(4096)
    before = open(path).read().count("\n")
    went = time.monotonic()
    s.close()
    while True:
        lines = open(path).read().split("\n")[:-1]
        if len(lines) > before: break
        if time.monotonic() - went > 5: sys.exit(print("not within 5 s"))
        time.sleep(0.0005)
    took.append(1000 * (float(lines[before]) - went))
took.sort()
print(f"{took[len(took) // 2]:.2f} {took[-1]:.2f}")
PY
in_tools "$nginx" -c "$dir/backend.conf" -p "$dir" & pids+=($!)
in_tools "$nginx" -c "$dir/nginx.conf" -p "$dir" & nginx_pid=$!; pids+=($nginx_pid)
in_tools "$haproxy" -f "$dir/haproxy.cfg" -db >/dev/null 2>&1 & haproxy_pid=$!; pids+=($haproxy_pid)
python3 "$dir/streams.py" "$dir/gone" & pids+=($!)
guard_toml() { # PORT ADMIN UPSTREAM
  printf 'listen = "127.0.0.1:%s"\nadmin = "127.0.0.1:%s"\n[limits]\nconnections = 20000\n[[server]]\nurl = "http://127.0.0.1:%s"\nmetrics = "none"\nkv_tokens = 100000000\n' "$1" "$2" "$3"
}
guard_toml 18603 18604 18600 >"$dir/guard.toml"
guard_toml 18613 18614 18610 >"$dir/streams.toml"
"$program" guard --config "$dir/guard.toml" 2>/dev/null & pids+=($!)
"$program" guard --config "$dir/streams.toml" 2>/dev/null & guard_pid=$!; pids+=($guard_pid)
names=(direct nginx haproxy guard) ports=(18600 18601 18602 18603)
if [ -n "${ROUTERS:-}" ]; then
  for router in vllm-router sglang-router; do
    [ -x "$tools/$router/bin/python" ] || { python3 -m venv "$tools/$router" && "$tools/$router/bin/pip" -q install "$router"; }
  done
  "$tools/vllm-router/bin/vllm-router" --host 127.0.0.1 --port 18605 --worker-urls http://127.0.0.1:18600 --policy round_robin --prometheus-port 18615 >"$dir/vllm-router.log" 2>&1 & pids+=($!)
  "$tools/sglang-router/bin/python" -m sglang_router.launch_router --host 127.0.0.1 --port 18606 --worker-urls http://127.0.0.1:18600 --policy round_robin --prometheus-port 18616 >"$dir/sglang-router.log" 2>&1 & pids+=($!)
  names+=(vllm-router sglang-router) ports+=(18605 18606)
fi
up() { for _ in $(seq 300); do python3 -c "import socket;socket.create_connection(('127.0.0.1',$1),1)" 2>/dev/null && return; sleep 0.2; done; echo "nothing listens on $1" >&2; return 1; }
for p in "${ports[@]}" 18610 18611 18612 18613; do up "$p"; done
sleep 2
load() { # PORT, more flags of h2load
  local port=$1; shift
  in_tools "$h2load" --h1 -d "$dir/body.json" -H 'content-type: application/json' "$@" "http://127.0.0.1:$port/v1/chat/completions"
}
echo "$(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg); $rate requests/s for $seconds s, then as many as go, $turns turns"
printf '%-14s %9s %9s %9s %9s %12s\n' proxy 'p50 ms' 'p99 ms' '+p50' '+p99' 'requests/s'
for ((turn = 1; turn <= turns; turn++)); do
  for i in "${!names[@]}"; do
    # Each of 10 callers sends a tenth of the rate.
    rm -f "$dir/log"
    load "${ports[$i]}" -c 10 -t 1 --rps $((rate / 10)) -n $((rate * seconds)) --log-file="$dir/log" >/dev/null
    read -r p50 p99 good < <(awk '$2 == 200 { print $3 / 1000; n++ }' "$dir/log" | sort -n | awk '{ v[NR] = $1 } END { print v[int(NR * 0.5)], v[int(NR * 0.99)], NR }')
    [ "$good" -ge $((rate * seconds * 99 / 100)) ] || echo "${names[$i]}: only $good of $((rate * seconds)) answered" >&2
    most=$(load "${ports[$i]}" -c 64 -t 1 -D "$seconds" | awk '/^finished in/ { print $4 }')
    [ "${names[$i]}" = direct ] && base50=$p50 base99=$p99
    read -r more50 more99 < <(awk -v a="$p50" -v b="$base50" -v c="$p99" -v d="$base99" 'BEGIN { printf "%.3f %.3f\n", a - b, c - d }')
    printf '%-14s %9s %9s %9s %9s %12s\n' "${names[$i]}" "$p50" "$p99" "$more50" "$more99" "$most"
    echo "${names[$i]} $more50 $more99 $most" >>"$dir/turns"
  done
done
# A machine that others share is twice as fast in one turn as in the next: the medians count.
if [ "$turns" -gt 1 ]; then
  echo "medians of $turns turns; share of the best of the other proxies:"
  python3 - "$dir/turns" <<'PY'
import statistics, sys
of = {}
for line in open(sys.argv[1]):
    name, *numbers = line.split()
    of.setdefault(name, []).append([float(n) for n in numbers])
of = {name: [statistics.median(v) for v in zip(*all)] for name, all in of.items()}
best = max(v[2] for name, v in of.items() if name not in ("direct", "guard"))
for name, (p50, p99, most) in of.items():
    print(f"{name:<14} {'':9} {'':9} {p50:9.3f} {p99:9.3f} {most:12.2f} {most / best:6.2f}")
PY
fi
[ "$streams" -gt 0 ] || exit 0
echo "memory with $streams open streams, MiB (streams that opened):"
for what in "nginx 18611 $(tree $nginx_pid | tr '\n' ' ')" "haproxy 18612 $(tree $haproxy_pid | tr '\n' ' ')" "guard 18613 $guard_pid"; do
  read -r name port list <<<"$what"
  # shellcheck disable=SC2086
  read -r opened mib < <(python3 "$dir/open.py" "$port" "$streams" $list)
  printf '%-14s %9s (%s)\n' "$name" "$mib" "$opened"
done
echo "until the server hears of a caller that goes away in a stream, ms (median, most of 100):"
for what in "direct 18610" "nginx 18611" "haproxy 18612" "guard 18613"; do
  read -r name port <<<"$what"
  printf '%-14s %s\n' "$name" "$(python3 "$dir/cancel.py" "$port" 100 "$dir/gone")"
done
