// The types that openapi-typescript made, used by openapi-fetch against a real server.
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { paths } from "./fleet.d.ts";

const token = readFileSync("token", "utf8").trim();
const client = createClient<paths>({ baseUrl: process.env.URL, headers: { Authorization: `Bearer ${token}` } });
const page = await client.GET("/v1/incidents", { params: { query: { each: true, class: ["host_oom_killed"] } } });
const ids = (page.data?.items ?? []).map((i) => i.id).sort();
if (ids.join() !== "a,b") throw new Error(`listed ${ids}`);
const one = await client.GET("/v1/incidents/{id}", { params: { path: { id: "a" } } });
if (one.data?.namespace !== "serving") throw new Error("read another");
const none = await client.GET("/v1/incidents/{id}", { params: { path: { id: "nothing" } } });
if (none.response.status !== 404) throw new Error("nothing was found");
