// The pages in a real browser. What is looked for are rules that hold for every page, and the flows of a person at night.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { LOOKS, ROOMS, fileName } from "./rooms.mjs";
import { serve } from "./serve.mjs";

const { CHROMIUM, PAGES, SHOTS, TOOLS } = process.env;
const require = createRequire(`${TOOLS}/`);
const { chromium } = require("playwright-core");
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
// The policy is the one of the crate, read from its source.
const shell = await readFile(new URL("../../crates/dualplane-pages/src/shell.rs", import.meta.url), "utf8");
const policy = shell.match(/POLICY: &str = "([^"]*)"/)[1].replace(/\\\n\s*/g, "");
assert.match(policy, /default-src 'none'/);

let browser, site, bare;

before(async () => {
  site = await serve(PAGES, policy);
  bare = await serve(PAGES, "frame-ancestors 'none'");
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
});
after(async () => {
  await browser?.close();
  site?.close();
  bare?.close();
});

/// A page that fails the test on any error of a script or of the policy.
async function open(path, options = LOOKS.light, from = site) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const errors = [];
  page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
  page.on("pageerror", (e) => errors.push(e.message));
  await page.goto(from.url + path, { waitUntil: "load" });
  return { page, context, errors, close: () => context.close() };
}

const incidents = (await readdir(join(PAGES, "incidents"))).filter((f) => f.endsWith(".html") && !f.includes(".print")).map((f) => `/incidents/${f.slice(0, -5)}`);

for (const [name, look] of Object.entries(LOOKS)) {
  test(`every page, ${name}: no error, nothing wider than the screen, WCAG AA`, { timeout: 180_000 }, async () => {
    const { page, errors, close } = await open("/", look);
    // The recorded incidents differ in what they have; each has its turn with one look, the full one with all.
    const turn = Object.keys(LOOKS).indexOf(name);
    const mine = incidents.filter((p, i) => p.endsWith("both-planes") || i % 3 === turn);
    for (const path of [...ROOMS, ...mine]) {
      await page.goto(site.url + path, { waitUntil: "load" });
      await page.waitForTimeout(100);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(wider, 0, `${path} is ${wider} px wider than the screen`);
      await page.evaluate(axe);
      const found = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      const told = found.violations.map((v) => `${v.id}: ${v.help} (${v.nodes.map((n) => n.target.join(" ")).slice(0, 3).join("; ")})`);
      assert.deepEqual(told, [], path);
      if (SHOTS) await page.screenshot({ path: join(SHOTS, `${name}${fileName(path)}.png`), fullPage: true });
    }
    assert.deepEqual(errors, []);
    await close();
  });
}

test("without scripts the page says the same", async () => {
  const { page, close } = await open("/incidents/both-planes", { ...LOOKS.light, javaScriptEnabled: false });
  assert.equal(await page.locator("#planes figure svg[role=img]").count(), 4);
  assert.ok(await page.locator("#planes figure > svg line.limit").count() >= 2, "limits of both planes");
  for (const id of ["first", "planes", "do", "why", "memory", "route"]) assert.ok(await page.locator(`#${id} h2`).isVisible(), id);
  await page.locator("#planes summary").click();
  assert.ok(await page.locator("#planes table").isVisible(), "a fold opens without scripts");
  await page.locator("a", { hasText: "Incidents" }).first().click();
  await page.locator(".facets a", { hasText: "VRAM" }).click();
  assert.match(page.url(), /plane=gpu/);
  await page.locator("a.chip").first().click();
  assert.equal(new URL(page.url()).search, "");
  await page.locator("#q").fill("oom");
  await page.locator("#q").press("Enter");
  assert.match(page.url(), /q=oom/);
  await close();
});

const view = (page) => page.locator(".planes").getAttribute("data-view").then((v) => v.split(" ").map(Number));

test("both planes zoom together by pointer, keys and buttons, and tell what stands under the cursor", async () => {
  const { page, errors, close } = await open("/incidents/both-planes");
  const planes = page.locator(".planes.drawn");
  assert.equal(await planes.locator("canvas").count(), 4);
  const [from, to] = await view(page);
  const over = planes.locator(".u-over").first();
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 30);
  const tip = page.locator(".tip");
  assert.match(await tip.textContent(), /GiB.*working set.*VRAM/s);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.95, box.y + 30, { steps: 5 });
  await page.mouse.up();
  const dragged = await view(page);
  assert.ok(dragged[1] - dragged[0] < (to - from) * 0.3, `a drag zooms: ${dragged}`);
  // The axis of the last picture moved as well: its labels lie within the stretch.
  await planes.focus();
  await page.keyboard.press("0");
  assert.deepEqual(await view(page), [from, to]);
  const words = async (key) => { await page.keyboard.press(key); return tip.textContent(); };
  const at = await words("End");
  assert.match(at, /the end/);
  assert.notEqual(await words("ArrowLeft"), at);
  await page.keyboard.press("+");
  const near = await view(page);
  assert.ok(Math.abs((near[1] - near[0]) / (to - from) - 0.5) < 0.3, `${near}`);
  await page.keyboard.press("Escape");
  assert.deepEqual(await view(page), [from, to]);
  await page.getByRole("button", { name: "Last minute" }).click();
  const last = await view(page);
  assert.ok(last[1] - last[0] <= 64, `${last}`);
  await page.getByRole("button", { name: "All" }).click();
  assert.deepEqual(errors, []);
  await close();
});

test("a command is copied as it is shown", async () => {
  const context = await browser.newContext({ ...LOOKS.light, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  await page.goto(`${site.url}/incidents/both-planes`);
  const box = page.locator(".do", { hasText: "kubectl" }).first();
  await box.getByRole("button").click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await box.locator("pre").textContent());
  assert.equal(await box.getByRole("button").textContent(), "Copied");
  await context.close();
});

test("the keyboard alone reaches everything, and one sees where it is", async () => {
  const { page, close } = await open("/incidents/both-planes");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.goto(`${site.url}/incidents/both-planes`);
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), summary, [tabindex='0']")].filter((e) => e.checkVisibility());
    all.forEach((e, i) => { e.dataset.stop = i; });
    return all.length;
  });
  const seen = new Set();
  for (let i = 0; i < wanted * 2 && seen.size < wanted; i += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      return { stop: e.dataset.stop, outline: getComputedStyle(e).outlineStyle, what: e.outerHTML.slice(0, 80) };
    });
    if (at.stop === undefined) continue;
    assert.notEqual(at.outline, "none", at.what);
    seen.add(at.stop);
  }
  assert.equal(seen.size, wanted);
  await close();
});

test("a new incident is told, and nothing moves by itself", async () => {
  const { page, close } = await open("/");
  const note = page.locator(".live");
  await note.waitFor();
  assert.match(await note.textContent(), /1 new incident/);
  await close();
});

test("in print all is open and nothing is for clicking", async () => {
  const { page, close } = await open("/incidents/both-planes?print");
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("#planes details:not([open]), #first details:not([open]), #why details:not([open])").count(), 0);
  assert.ok(!(await page.locator(".bar").isVisible()));
  assert.equal(await page.locator("script").count(), 0);
  if (SHOTS) await page.pdf({ path: join(SHOTS, "print.pdf"), format: "A4" });
  await close();
});

for (const [name, from] of [["with the policy", () => site], ["without any policy", () => bare]]) {
  test(`of 200 planted texts none runs, ${name}`, { timeout: 180_000 }, async () => {
    const context = await browser.newContext(LOOKS.light);
    const page = await context.newPage();
    const ran = [];
    await page.exposeFunction("ran", (n) => ran.push(n));
    page.on("dialog", (d) => { ran.push(d.message()); d.dismiss(); });
    const files = (await readdir(join(PAGES, "hostile"))).sort();
    assert.ok(files.filter((f) => f.endsWith("-incident.html")).length === 200, "one page for each");
    // One that does run: otherwise the test could not fail.
    await page.goto(`${from().url}/list/empty.html`);
    await page.evaluate(() => window.ran("probe"));
    assert.deepEqual(ran.splice(0), ["probe"]);
    for (const file of files) {
      const url = `${from().url}/hostile/${file}`;
      await page.goto(url, { waitUntil: "load" });
      // What opens, gets the focus or lies under the pointer may run later.
      await page.evaluate(() => {
        for (const d of document.querySelectorAll("details")) d.open = true;
        for (const e of document.querySelectorAll("[autofocus]")) e.focus();
      });
      assert.equal(page.url(), url, `${file} leads elsewhere`);
      assert.deepEqual(ran, [], file);
    }
    const foreign = await page.evaluate(() => document.querySelectorAll("iframe, object, embed, base, template").length);
    assert.equal(foreign, 0);
    await context.close();
  });
}
