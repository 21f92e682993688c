// A real issuer (oidc-provider) with a login of its own, and an API server that lets the group sre see the namespace serving.
// Usage: node issuer.mjs PORT API_PORT PAGE_URL. Ends with the process that started it.
import http from "node:http";
import { Provider } from "oidc-provider";

const [port, api, page] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
    clients: [{
        client_id: "fleet", client_secret: "a secret: with + and %", redirect_uris: [`${page}/login/callback`],
        grant_types: ["authorization_code"], response_types: ["code"],
    }],
    claims: { openid: ["sub"], groups: ["groups"] },
    scopes: ["openid", "groups"],
    // Groups stand in the ID token, where this server reads them.
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: id === "mia" ? ["sre"] : ["others"] }) }),
});
provider.listen(Number(port), "127.0.0.1");

http.createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const spec = JSON.parse(body).spec;
    const of = spec.resourceAttributes ?? {};
    const allowed = (spec.groups ?? []).includes("sre") && of.verb === "get" && of.resource === "pods" && of.namespace === "serving";
    response.writeHead(201, { "content-type": "application/json" });
    response.end(JSON.stringify({ kind: "Answer", status: request.url.endsWith("subjectaccessreviews") ? { allowed } : { authenticated: false } }));
}).listen(Number(api), "127.0.0.1");
