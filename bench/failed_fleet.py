"""A cluster that exists only as answers: PODS pods of one node died, one of them left a log of LOG_MB.

The node's kernel log holds their kills among those of neighbours. Prints the path of a kubeconfig, then serves.
Usage: failed_fleet.py DIR [PODS=30] [LOG_MB=300]"""

import http.server
import json
import pathlib
import re
import subprocess
import sys
import threading
import urllib.parse

root = pathlib.Path(sys.argv[1])
pods = int(sys.argv[2]) if len(sys.argv) > 2 else 30
log_mb = int(sys.argv[3]) if len(sys.argv) > 3 else 300
here = pathlib.Path(__file__).parent
incident = here.parent / "testdata/incidents/real-k8s-pid1-oom"
UID = "a3fbb349-1a01-4843-a71d-b2e063a36553"
KILL = (incident / "kernel.log").read_text()
assert UID in KILL
KILL = KILL[KILL.index("[ 2060.043095]") :]


def uid(i: int) -> str:
    return f"{i:08x}-1a01-4843-a71d-b2e063a36553"


def kernel_log() -> bytes:
    out, n = [], 0
    # Each pod died twice among the neighbours' kills; 5 MiB is more than is read of it.
    while sum(map(len, out)) < 5 << 20:
        who = uid(n // 4 % pods if n % 4 == 0 else 100_000 + n)
        for line in KILL.replace(UID, who).splitlines():
            out.append(f"Nov 21 10:{n // 60 % 60:02}:{n % 60:02} n1 kernel: {line}\n")
        n += 1
    return "".join(out).encode()


def pod(i: int) -> dict:
    died = {"exitCode": 1, "reason": "Error", "containerID": f"containerd://{i:064x}", "startedAt": "2026-11-21T09:00:00Z", "finishedAt": "2026-11-21T10:59:50Z"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"llm-{i}", "namespace": "serving", "uid": uid(i), "creationTimestamp": "2026-11-21T08:00:00Z"},
        "spec": {"nodeName": "n1", "containers": [{"name": "vllm", "image": "vllm/vllm-openai:v0.11.2", "resources": {"limits": {"memory": "96Mi", "nvidia.com/gpu": "1"}}}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "vllm", "restartCount": 1, "image": "vllm/vllm-openai:v0.11.2", "imageID": "", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": died}}
            ],
        },
    }


# The runtime's words make 430 MB of 300.
FRAMED = 0.7


def written(mib: int, name: str) -> pathlib.Path:
    """A log in the runtime's framing."""
    to = root / name
    out = subprocess.run([sys.executable, here / "serving_log.py", str(mib * FRAMED)], capture_output=True, check=True).stdout
    lines = out.split(b"\n")
    n = len(lines)
    with to.open("wb") as f:
        for i, line in enumerate(lines[:-1]):
            at = i * 7190 // n
            f.write(b"2026-11-21T%02d:%02d:%02d.%09dZ stdout F %s\n" % (9 + at // 3600, at // 60 % 60, at % 60, i, line))
    return to


kernel = kernel_log()
large = written(log_mb, "large.log")
small = written(1, "small.log")
KERNEL_INDEX = b'<pre>\n<a href="kern.log">kern.log</a>\n</pre>\n'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body: bytes, status: int = 200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def file(self, path: pathlib.Path, stream: bool):
        self.send_response(200)
        if stream:
            # As `kubectl logs` prints it: without the runtime's words.
            self.send_header("Connection", "close")
            self.end_headers()
            with path.open("rb") as f:
                try:
                    for line in f:
                        self.wfile.write(line.replace(b" stdout F ", b" ", 1))
                except OSError:
                    pass
            self.close_connection = True
            return
        self.send_header("Content-Length", str(path.stat().st_size))
        self.end_headers()
        with path.open("rb") as f:
            self.wfile.flush()
            try:
                self.connection.sendfile(f)
            except OSError:
                self.close_connection = True

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        if path == "/api/v1/pods":
            return self.answer(json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod(i) for i in range(pods)]}).encode())
        if m := re.fullmatch(r"/api/v1/namespaces/serving/pods/llm-(\d+)(/log)?", path):
            if not m[2]:
                return self.answer(json.dumps(pod(int(m[1]))).encode())
            return self.file(large if m[1] == "0" else small, True)
        if path.endswith("/proxy/logs/"):
            return self.answer(KERNEL_INDEX)
        if path.endswith("/proxy/logs/kern.log"):
            if m := re.fullmatch(r"bytes=-(\d+)", self.headers.get("Range", "")):
                return self.answer(kernel[-int(m[1]) :], 206)
            return self.answer(kernel)
        if m := re.search(r"/proxy/logs/pods/serving_llm-(\d+)_.*/vllm/1\.log$", path):
            return self.file(large if m[1] == "0" else small, False)
        if path.endswith("/events"):
            return self.answer(json.dumps({"kind": "EventList", "apiVersion": "v1", "items": []}).encode())
        self.answer(json.dumps({"kind": "Status", "message": "not here", "code": 404}).encode(), 404)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
config = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
}
(root / "config").write_text(json.dumps(config))
print(root / "config", flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown())).start()
server.serve_forever()
