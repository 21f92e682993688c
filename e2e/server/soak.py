"""Two servers on one Postgres, killed and started again; what was acknowledged is counted at the end. See run."""
import argparse
import http.client
import http.server
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

SENDERS = 8
# Between two kills of a server, and of the database.
KILL, DATABASE = 20, 60


def report(n):
    return {
        "schema": "dualplane.verdict/v2", "incident": "x",
        "verdict": {"class": "cuda_oom_runtime", "phase": "traffic", "confidence": "high", "title": "t", "summary": f"death {n}"},
        "trigger": None, "causes": [], "actions": [], "subject": {"engine": "vllm"},
    }


class Told(http.server.BaseHTTPRequestHandler):
    """The channel: who is told of, and how often."""
    causes = Counter()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Told.causes[body["incident"]["cause_key"]] += 1
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server:
    def __init__(self, args, n, notify):
        self.args, self.n, self.notify = args, n, notify
        self.peak, self.port, self.child, self.starts = 0, None, None, 0
        self.folder = f"{args.home}/data{n}"
        os.makedirs(self.folder, exist_ok=True)

    def start(self):
        while True:
            said = open(f"{self.folder}/said", "w+")
            url = f"host={self.args.home}/pg user=dualplane dbname=postgres"
            self.child = subprocess.Popen(
                [self.args.server, "serve", "--listen", "127.0.0.1:0", "--rate", "1000000", "--data", self.folder,
                 "--database-url", url, "--notify", self.notify], stderr=said)
            self.starts += 1
            while self.child.poll() is None:
                text = open(f"{self.folder}/said").read()
                if "http://127.0.0.1:" in text:
                    self.port = int(text.split("http://127.0.0.1:")[1].split()[0])
                    return
                time.sleep(0.05)
            time.sleep(0.5)  # The database is away: try again, as Kubernetes would.

    def look(self):
        try:
            for line in open(f"/proc/{self.child.pid}/status"):
                if line.startswith("VmHWM"):
                    self.peak = max(self.peak, int(line.split()[1]) // 1024)
        except OSError:
            pass

    def kill(self):
        self.look()
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()


def ask(port, method, path, body=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        c.request(method, path, body)
        answer = c.getresponse()
        return answer.status, answer.read()
    finally:
        c.close()


def send(servers, me, stop, acknowledged, statuses, causes):
    n = 0
    while not stop.is_set():
        name = f"s{me}-{n}"
        owner = f"w{me}-{n % 40}" if n < 400 else f"w{me}-{random.randrange(40)}"
        body = json.dumps({"report": report(n), "where": {"cluster": "k", "namespace": f"ns{me}", "owner": owner, "pod": f"{owner}-{n}"}})
        # As an agent does: the same again until it is answered.
        while True:
            try:
                status, _ = ask(random.choice(servers).port, "PUT", f"/v1/incidents/{name}", body)
            except (OSError, http.client.HTTPException):
                status = 0
            statuses[status] += 1
            if status in (200, 201):
                acknowledged.add(name)
                causes.add(owner)
                break
            if status not in (0, 429, 503):
                print(f"{name}: {status}", file=sys.stderr)
                os._exit(1)
            if stop.is_set():
                return
            time.sleep(0.05)
        n += 1
        time.sleep(0.02)


def main():
    p = argparse.ArgumentParser()
    for key in ("server", "postgres", "home"):
        p.add_argument(f"--{key}", required=True)
    p.add_argument("--minutes", type=float, required=True)
    args = p.parse_args()
    pg, nobody = f"{args.home}/pg", 65534
    os.makedirs(pg)
    as_somebody = {}
    if os.getuid() == 0:
        os.chown(pg, nobody, nobody)
        as_somebody = {"user": nobody, "group": nobody, "extra_groups": []}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": pg, **as_somebody}
    subprocess.run([f"{args.postgres}/initdb", "-D", f"{pg}/data", "-U", "dualplane", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"], check=True, **quiet)

    def database():
        server = subprocess.Popen([f"{args.postgres}/postgres", "-D", f"{pg}/data", "-k", pg, "-c", "listen_addresses="], **quiet)
        while subprocess.run([f"{args.postgres}/pg_isready", "-q", "-h", pg], **quiet).returncode:
            time.sleep(0.1)
        return server

    db = database()
    channel = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Told)
    threading.Thread(target=channel.serve_forever, daemon=True).start()
    notify = f"{args.home}/notify.toml"
    with open(notify, "w") as f:
        f.write(f'url = "https://fleet.example"\nallow_hosts = ["127.0.0.1"]\n[[channel]]\nname = "x"\nkind = "webhook"\n'
                f'url = "http://127.0.0.1:{channel.server_port}/"\nper_hour = 100000\n')
    servers = [Server(args, n, notify) for n in range(2)]
    for s in servers:
        s.start()
    time.sleep(3)  # One of them has begun to tell, before anything dies.
    stop, acknowledged, statuses, causes = threading.Event(), set(), Counter(), set()
    threads = [threading.Thread(target=send, args=(servers, n, stop, acknowledged, statuses, causes)) for n in range(SENDERS)]
    for t in threads:
        t.start()
    kills = restarts = 0
    began = time.time()
    while time.time() - began < args.minutes * 60:
        time.sleep(KILL)
        servers[kills % 2].kill()
        servers[kills % 2].start()
        kills += 1
        if kills % (DATABASE // KILL) == 0:
            db.send_signal(signal.SIGQUIT)
            db.wait()
            time.sleep(2)
            db = database()
            restarts += 1
        print(f"{time.time() - began:.0f} s: {len(acknowledged)} acknowledged, {kills} kills, {restarts} restarts of the database", flush=True)
    stop.set()
    for t in threads:
        t.join()
    # Whatever waits is told; a killed holder's lease ends after 40 s.
    until = time.time() + 120
    while len(Told.causes) < len(causes) and time.time() < until:
        time.sleep(1)
    time.sleep(5)
    held, after = set(), ""
    while True:
        status, body = ask(servers[0].port, "GET", f"/v1/incidents?each=true&limit=500&after={after}")
        assert status == 200, body
        page = json.loads(body)
        for i in page["items"]:
            assert i["id"] not in held, f"{i['id']} twice"
            held.add(i["id"])
        after = page.get("next")
        if not after:
            break
    counts = [json.loads(ask(s.port, "GET", "/v1/fleet")[1])["incidents"] for s in servers]
    for s in servers:
        s.look()
        s.child.terminate()
        s.child.wait()
    db.send_signal(signal.SIGINT)
    db.wait()
    lost, more = acknowledged - held, {c: n for c, n in Told.causes.items() if n > 1}
    print(f"{len(acknowledged)} acknowledged, {len(held)} held, {len(lost)} lost; answers {dict(statuses)}")
    print(f"statistics of the two: {counts}; {len(causes)} causes, {len(Told.causes)} told, {len(more)} of them more than once")
    print(f"{kills} kills of servers, {restarts} of the database; the servers held at most {[s.peak for s in servers]} MiB")
    # A death whose sender was never answered may be there: it was kept, and the answer was cut.
    unanswered = held - acknowledged
    good = not lost and len(unanswered) <= SENDERS and all(n == len(held) for n in counts)
    # A message may come twice where its sender was killed before it was noted: at most once a kill.
    good = good and len(Told.causes) >= len(causes) and sum(n - 1 for n in more.values()) <= kills
    sys.exit(0 if good else 1)


main()
