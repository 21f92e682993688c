#!/usr/bin/env python3
"""Records a stretch of real load, for the tests of alerts and dashboards: testdata/alerts/recorded.yaml.

A StatefulSet of real vLLM on the CPU serves a load that rises and falls, in the cluster of `e2e/run up` (and `e2e/run engine`);
the agent, kube-state-metrics and the kubelet's cAdvisor are scraped by Debian's Prometheus. What comes out is one value each
half minute of those series that the printed rules and boards read, in promtool's notation.

    eval "$(e2e/run env)" && e2e/alerts/record.py DUALPLANE KUBE_STATE_METRICS MINUTES >testdata/alerts/recorded.yaml

There is no card here: series of DCGM are not in it.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

DUALPLANE, KSM, MINUTES = sys.argv[1], sys.argv[2], float(sys.argv[3])
SPACE, REPLICAS, STEP = "e2e-record", 2, 30
AGENT, KSM_PORT, PROMETHEUS = "127.0.0.1:10989", 18080, "127.0.0.1:19090"


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def kubectl(*args, text=None):
    return subprocess.run(["kubectl", *args], input=text, text=True, check=True, capture_output=True).stdout


def dualplane(*args):
    return subprocess.run([DUALPLANE, *args], text=True, check=True, capture_output=True).stdout


def serving():
    folder = os.environ["E2E_VLLM"]
    return f"""
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: llm, namespace: {SPACE}}}
spec:
  serviceName: llm
  replicas: {REPLICAS}
  podManagementPolicy: Parallel
  selector: {{matchLabels: {{app: llm}}}}
  template:
    metadata: {{labels: {{app: llm}}}}
    spec:
      hostPID: true
      terminationGracePeriodSeconds: 5
      hostname: localhost
      containers:
      - name: vllm
        image: docker.io/vllm/vllm-openai:v0.11.0
        imagePullPolicy: Never
        command: [chroot, /host, /bin/bash, -c]
        args:
        - |
          cd {folder} && exec venv/bin/python venv/bin/vllm serve ./tiny --port 8000 --max-model-len 4096 --enforce-eager 2>&1
        env:
        - {{name: VLLM_CPU_KVCACHE_SPACE, value: "1"}}
        - {{name: VLLM_HOST_IP, value: 127.0.0.1}}
        - {{name: GLOO_SOCKET_IFNAME, value: lo}}
        - {{name: HF_HUB_OFFLINE, value: "1"}}
        - {{name: PATH, value: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
        ports: [{{containerPort: 8000, name: http}}]
        readinessProbe: {{httpGet: {{path: /health, port: 8000}}, periodSeconds: 3, timeoutSeconds: 5}}
        resources: {{limits: {{memory: 6Gi, nvidia.com/gpu: 1}}, requests: {{memory: 64Mi}}}}
        volumeMounts: [{{name: host, mountPath: /host}}]
      volumes: [{{name: host, hostPath: {{path: /}}}}]
"""


def keep_asking(address, wanted, number, done):
    """One client: it asks while so many are wanted."""
    rng = number * 7919 + 1
    while not done.is_set():
        if wanted() <= number:
            time.sleep(0.5)
            continue
        rng = (rng * 1103515245 + 12345) % 2**31
        body = {
            "model": "./tiny",
            "prompt": "one two three four " * (4 + rng % 60),
            "max_tokens": 16 + rng % 100,
            "ignore_eos": True,
            "stream": True,
        }
        try:
            request = urllib.request.Request(f"http://{address}:8000/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120).read()
        except OSError as e:
            say(f"{address}: {e}")
            time.sleep(2)
        time.sleep(0.2)


def ask(path, **query):
    url = f"http://{PROMETHEUS}{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
        return json.load(answer)["data"]


def names_read():
    """Metrics that the printed rules and boards name."""
    text = dualplane("rules")
    boards = tempfile.mkdtemp()
    dualplane("dashboards", "--dir", boards)
    text += "".join(open(os.path.join(boards, f)).read() for f in os.listdir(boards))
    return set(re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", text))


def number(v):
    text = f"{v:.6f}".rstrip("0").rstrip(".") if abs(v) < 1e6 else f"{v:.0f}"
    return "0" if text in ("", "-0") else text


def notation(values):
    """promtool's: `axn` is a and n more, `_xn` is missing n times."""
    out, i = [], 0
    while i < len(values):
        n = 1
        while i + n < len(values) and values[i + n] == values[i]:
            n += 1
        v = values[i]
        out.append(f"_x{n}" if v is None else number(v) if n == 1 else f"{number(v)}x{n - 1}")
        i += n
    return " ".join(out)


def record(start, end):
    read = names_read()
    count = int((end - start) // STEP) + 1
    lines = []
    for name in ask("/api/v1/label/__name__/values"):
        if name not in read or name.startswith(("dualplane:", "ALERTS")):
            continue
        selector = f'{name}{{job!="self"}}'
        for series in ask("/api/v1/query_range", query=selector, start=start, end=end, step=STEP)["result"]:
            labels = {k: v for k, v in series["metric"].items() if k not in ("__name__", "job", "instance", "image_id", "uid", "id")}
            where = labels.get("namespace"), labels.get("exported_namespace")
            # The machine's own, and what others do here.
            if any(where) and SPACE not in where:
                continue
            if name.startswith("container_") and not any(where):
                continue
            at = {int(t): float(v) for t, v in series["values"]}
            values = [at.get(start + i * STEP) for i in range(count)]
            values = [None if v is not None and not math.isfinite(v) else v for v in values]
            labels = ",".join(f'{k}="{v}"' for k, v in sorted(labels.items()) if "'" not in v)
            lines.append(f"- {{series: '{name}{{{labels}}}', values: '{notation(values)}'}}")
    seen = {line.split("'")[1]: line for line in lines}
    return count, sorted(seen.values())


def main():
    folder = tempfile.mkdtemp()
    running = []
    subprocess.run(["kubectl", "delete", "namespace", SPACE, "--ignore-not-found"], check=True, capture_output=True)
    kubectl("create", "namespace", SPACE)
    try:
        log = open(os.path.join(folder, "log"), "w")
        run = lambda *command: running.append(subprocess.Popen(command, stdout=log, stderr=log))
        run(DUALPLANE, "agent", "--node", "gpu-node-1", "--listen", AGENT, "--kubeconfig", os.environ["KUBECONFIG"], "--state", os.path.join(folder, "state"))
        run(KSM, "--kubeconfig", os.environ["KUBECONFIG"], "--port", str(KSM_PORT), "--telemetry-port", "18081", "--host", "127.0.0.1", "--telemetry-host", "127.0.0.1")
        kubectl("apply", "-f", "-", text=serving())
        addresses = []
        while len(addresses) < REPLICAS:
            time.sleep(1)
            addresses = kubectl("get", "pods", "-n", SPACE, "-o", "jsonpath={.items[*].status.podIP}").split()
        pki, node = os.path.join(os.environ["E2E_DIR"], "pki"), urllib.parse.urlparse(os.environ["E2E_PROMETHEUS"]).hostname
        pods = dict(zip(kubectl("get", "pods", "-n", SPACE, "-o", "jsonpath={.items[*].metadata.name}").split(), addresses))
        tls = {"ca_file": f"{pki}/ca.crt", "cert_file": f"{pki}/admin.crt", "key_file": f"{pki}/admin.key"}
        config = {
            "global": {"scrape_interval": "5s", "evaluation_interval": "30s"},
            "scrape_configs": [
                {"job_name": "dualplane", "honor_labels": True, "static_configs": [{"targets": [AGENT]}]},
                {"job_name": "kube-state-metrics", "honor_labels": True, "static_configs": [{"targets": [f"127.0.0.1:{KSM_PORT}"]}]},
                {"job_name": "cadvisor", "scheme": "https", "metrics_path": "/metrics/cadvisor", "tls_config": tls, "static_configs": [{"targets": [f"{node}:10250"]}]},
                {"job_name": "engines", "static_configs": [{"targets": [f"{ip}:8000"], "labels": {"namespace": SPACE, "pod": pod, "container": "vllm"}} for pod, ip in pods.items()]},
            ],
        }
        with open(os.path.join(folder, "prometheus.yml"), "w") as f:
            json.dump(config, f)
        debian = os.environ["E2E_DEBIAN"] + "/usr"
        mount = "mount -t overlay overlay -o lowerdir=$0/share:/usr/share /usr/share && exec \"$@\""
        run("unshare", "--mount", "--", "sh", "-c", mount, debian, f"{debian}/bin/prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address={PROMETHEUS}")
        say(f"waits for {pods}, log in {folder}")
        began = time.time()
        while kubectl("get", "pods", "-n", SPACE, "-o", "jsonpath={.items[*].status.containerStatuses[*].ready}").split() != ["true"] * REPLICAS:
            assert time.time() - began < 600, kubectl("get", "pods", "-n", SPACE)
            time.sleep(2)
        say("serves")
        first, done = time.time(), threading.Event()
        # From one request at a time to eight and back: a day in small.
        wanted = lambda: 1 + 7 * math.sin(math.pi * min(1, (time.time() - first) / (MINUTES * 60))) ** 2
        for ip in pods.values():
            for n in range(8):
                threading.Thread(target=keep_asking, args=(ip, wanted, n, done), daemon=True).start()
        while time.time() - first < MINUTES * 60:
            time.sleep(10)
            say(f"{(time.time() - first) / 60:.1f} of {MINUTES} min, {wanted():.1f} clients each")
        end = int(time.time())
        done.set()
        # From the first scrape on: the load of the weights is in it.
        start = int(began) + 5
        count, lines = record(start, end)
        say(f"{len(lines)} series of {count} values")
        print(f"# Recorded on {time.strftime('%Y-%m-%d', time.gmtime())} by e2e/alerts/record.py: {REPLICAS} real vLLM on the CPU (vllm-cpu, a model of 7 MB) in a real Kubernetes, from their start on")
        print("# under a load that rises and falls, with kube-state-metrics 2.20, the kubelet's cAdvisor and the agent. No card was there: no series of DCGM.")
        print(f"step_seconds: {STEP}\nvalues: {count}\n# From here on they serve.\nserving_from: {int(first - start) // STEP + 2}\ninput_series:")
        print("\n".join(lines))
    finally:
        for p in running:
            p.terminate()
        subprocess.run(["kubectl", "delete", "namespace", SPACE, "--wait=false"], capture_output=True)


main()
