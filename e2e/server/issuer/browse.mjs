// Signs somebody in as a browser would, over the pages of the issuer, and prints the list of incidents that they see.
// Usage: node browse.mjs PAGE_URL NAME.
const [page, name] = process.argv.slice(2);
const jars = new Map();

async function ask(url, form, more = {}) {
    const host = new URL(url).host;
    const jar = jars.get(host) ?? new Map();
    jars.set(host, jar);
    const cookie = [...jar].map(([k, v]) => `${k}=${v}`).join("; ");
    const headers = { accept: "text/html", cookie, ...more };
    const body = form && new URLSearchParams(form);
    const answer = await fetch(url, { method: form ? "POST" : "GET", headers, body, redirect: "manual" });
    for (const set of answer.headers.getSetCookie()) {
        const [pair] = set.split(";");
        const at = pair.indexOf("=");
        if (/max-age=0|expires=Thu, 01 Jan 1970/i.test(set)) jar.delete(pair.slice(0, at));
        else jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return answer;
}

let url = `${page}/?each=true`;
for (let step = 0; step < 20; step += 1) {
    const answer = await ask(url);
    const to = answer.headers.get("location");
    if (to) {
        url = new URL(to, url).href;
        continue;
    }
    const text = await answer.text();
    if (url.startsWith(page)) {
        console.log(`${answer.status} ${text}`);
        const out = await ask(`${page}/logout`, {}, { origin: page });
        const after = await ask(`${page}/`);
        if (out.status !== 200 || after.status !== 303) throw new Error(`signed out: ${out.status}, ${after.status}`);
        process.exit(0);
    }
    // A form of the issuer: a name and any password, then consent.
    const action = text.match(/action="([^"]+)"/)[1];
    const prompt = text.match(/name="prompt" value="([^"]+)"/)[1];
    const filled = prompt === "login" ? { prompt, login: name, password: "any" } : { prompt };
    const sent = await ask(new URL(action, url).href, filled);
    url = new URL(sent.headers.get("location"), url).href;
}
throw new Error("it goes round in circles");
