"""Callers of a completions API: one request, and many that send one after another. Standard library only."""
import asyncio, json, math, random, re, ssl, time

WORDS = "the model server holds tokens of every request in its cache until it ends".split()


def prompt(rng, tokens, per_word): return " ".join(rng.choice(WORDS) for _ in range(max(1, int(tokens / per_word))))


def until(seconds, is_so):
    """Whether it comes to be so within so many seconds; a server that does not answer is asked again."""
    began = time.time()
    while time.time() - began < seconds:
        try:
            if is_so(): return True
        except OSError: pass
        time.sleep(0.1)
    return False


def request(rng, per_word, most=7800, output=256):
    """A prompt of 10 to `most` tokens, as many short as long ones by order of magnitude."""
    tokens = math.exp(rng.uniform(math.log(10), math.log(most)))
    body = {"model": "m", "prompt": prompt(rng, tokens, per_word), "max_tokens": rng.randint(16, output), "ignore_eos": True}
    if rng.random() < 0.5: body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


class Answer:
    def __init__(self, got, seconds):
        self.seconds, self.status, self.code, self.tokens, self.text = seconds, 0, "", 0, got[-400:].decode(errors="replace")
        if isinstance(got, bytes) and got.startswith(b"HTTP/1.1 "):
            self.status = int(got.split(b" ", 2)[1])
            code = re.search(rb'"code": ?"([a-z_]+)"', got)
            self.code = code[1].decode() if code else ""
            counts = [int(n) for n in re.findall(rb'"(?:prompt|completion)_tokens": ?(\d+)', got)[-2:]]
            self.tokens = sum(counts) if self.status == 200 else 0

    @property
    def word(self): return "done" if self.status == 200 and self.tokens and not self.code else self.code or f"status {self.status}"


async def post(port, body, tenant="a", stop_after=None, timeout=600, tls=None):
    """`stop_after`: goes away after so many seconds."""
    raw, began = json.dumps(body).encode(), time.time()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24, ssl=tls)
    except OSError as e:
        a = Answer(b"", 0)
        a.code = type(e).__name__
        return a
    try:
        writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
                     b"x-tenant: %s\r\ncontent-length: %d\r\n\r\n" % (tenant.encode(), len(raw)) + raw)
        async def whole():
            await writer.drain()
            parts = []
            while part := await reader.read(1 << 20): parts.append(part)
            return b"".join(parts)
        return Answer(await asyncio.wait_for(whole(), stop_after or timeout), time.time() - began)
    except asyncio.TimeoutError: code = "gone" if stop_after else "timeout"
    except (OSError, ssl.SSLError) as e: code = type(e).__name__
    finally: writer.close()
    a = Answer(b"", time.time() - began)
    a.code = code
    return a


async def for_seconds(port, seconds, make, tenants, wait=0.2):
    """So many callers of each tenant for a time: what became of each request, and the tokens of those that were done within it."""
    until = time.time() + seconds
    out, tokens, odd = {t: {} for t in tenants}, dict.fromkeys(tenants, 0), []
    async def caller(tenant):
        while time.time() < until:
            a = await post(port, make(), tenant)
            out[tenant][a.word] = out[tenant].get(a.word, 0) + 1
            if a.word == "done" and time.time() <= until: tokens[tenant] += a.tokens
            if a.word.startswith("status") and len(odd) < 3: odd.append(a.text)
            if a.status in (429, 503): await asyncio.sleep(wait)
    callers = [asyncio.create_task(caller(t)) for t, n in tenants.items() for _ in range(n)]
    await asyncio.wait(callers, timeout=seconds + 1)
    # What is under way then goes away: the next phase begins with an idle server.
    for c in callers: c.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    return {"by": out, "tokens": tokens, "odd": odd}


async def all_of(port, bodies, callers):
    """A given piece of work by so many callers: seconds, tokens, and what became of each."""
    queue, out, tokens, began = list(reversed(bodies)), {}, 0, time.time()
    async def caller():
        nonlocal tokens
        while queue:
            a = await post(port, queue.pop())
            out[a.word] = out.get(a.word, 0) + 1
            tokens += a.tokens
    await asyncio.gather(*(caller() for _ in range(callers)))
    took = time.time() - began
    return {"callers": callers, "seconds": round(took, 1), "tokens_per_second": round(tokens / took, 1), "by": out}
