// Makes a container in Azurite. Usage: node container.mjs URL ACCOUNT KEY CONTAINER
import { createHmac } from "node:crypto";

const [url, account, key, container] = process.argv.slice(2);
const date = new Date().toUTCString(), version = "2021-08-06";
const signed = ["PUT", ...Array(11).fill(""), `x-ms-date:${date}`, `x-ms-version:${version}`, `/${account}/${account}/${container}`, "restype:container"].join("\n");
const signature = createHmac("sha256", Buffer.from(key, "base64")).update(signed).digest("base64");
const headers = { "x-ms-date": date, "x-ms-version": version, authorization: `SharedKey ${account}:${signature}` };
const answer = await fetch(`${url}/${account}/${container}?restype=container`, { method: "PUT", headers });
if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`);
