// Serves pages that the tests have written, with the policy that the server sends.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { join, normalize } from "node:path";

const types = { css: "text/css; charset=utf-8", js: "text/javascript; charset=utf-8", svg: "image/svg+xml", html: "text/html; charset=utf-8", md: "text/markdown; charset=utf-8", txt: "text/plain; charset=utf-8" };

/// Where an address lies among the files.
export function fileOf(url) {
  const { pathname, search } = new URL(url, "http://localhost");
  const path = normalize(decodeURIComponent(pathname)).replace(/^(\.\.(\/|$))+/, "");
  if (/\.[a-z]+$/.test(path)) return path;
  if (path === "/") return search.includes("plane=gpu") ? "/list/gpu.html" : search.includes("each=true") ? "/list/each.html" : search.includes("q=") ? "/list/words.html" : "/list/index.html";
  if (path.startsWith("/gpus/")) return "/card.html";
  return search === "?print" ? `${path}.print.html` : `${path}.html`;
}

export async function serve(dir, policy) {
  const server = createServer(async (request, response) => {
    // New incidents are announced here; the tests announce one.
    if (request.url === "/v1/events") {
      response.writeHead(200, { "content-type": "text/event-stream", "content-security-policy": policy });
      response.write("event: incident\ndata: {}\n\n");
      return;
    }
    try {
      const file = fileOf(request.url);
      const bytes = await readFile(join(dir, file));
      response.writeHead(200, { "content-type": types[file.split(".").pop()] ?? "application/octet-stream", "content-security-policy": policy, "x-content-type-options": "nosniff" });
      response.end(bytes);
    } catch {
      response.writeHead(404, { "content-type": "text/plain", "content-security-policy": policy });
      response.end("not here");
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => { server.closeAllConnections(); server.close(); } };
}
