// What each page looks like, held to a picture of it that somebody has looked at (pictures/). Pictures are an eighth of the page: a word
// that changed is no matter, a section that is missing, moved or lost its colours is. PICTURES=keep keeps what is seen as the new pictures.
import assert from "node:assert/strict";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { LOOKS, ROOMS, fileName } from "./rooms.mjs";
import { serve } from "./serve.mjs";

const { CHROMIUM, PAGES, TOOLS, SHOTS } = process.env;
const KEEPS = process.env.PICTURES === "keep";
const KEPT = new URL("pictures/", import.meta.url).pathname;
const require = createRequire(`${TOOLS}/`);
const { chromium } = require("playwright-core");

/// One picture stands for so many pixels in either direction.
const SCALE = 8;
/// Of 255, in one colour of a spot: from here on it differs. Edges of letters on another machine stay below.
const DIFFERS = 40;
/// Of all spots; of those of a tile of so many in either direction, which a curve crosses; and of the height.
const SPOTS = 0.01, TILE = 16, CROWD = 0.12, HEIGHT = 0.01;

const PAGES_SEEN = [...ROOMS.filter((path) => !/list\/nothing|-empty/.test(path)), "/incidents/both-planes", "/incidents/sglang-hicache-over-limit"];

/// Letters of every machine, so that lines break at the same words.
const face = async (family, name, weight) => {
  const file = require.resolve(`@fontsource/${name}/files/${name}-latin-${weight}-normal.woff2`);
  return `@font-face{font-family:"${family}";font-weight:${weight};src:url(data:font/woff2;base64,${(await readFile(file)).toString("base64")})}`;
};
const letters = [await face("Kept", "dejavu-sans", 400), await face("Kept", "dejavu-sans", 700), await face("Kept Mono", "dejavu-mono", 400),
  "body,input,button{font-family:Kept!important}code,pre,kbd{font-family:'Kept Mono'!important}"].join("\n");

let browser, site, small;

before(async () => {
  // Without the policy: the letters stand inline.
  site = await serve(PAGES, "frame-ancestors 'none'");
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb"] });
  small = await browser.newPage();
});
after(async () => {
  await browser?.close();
  site?.close();
});

/// The eighth of a page, as a PNG.
async function seen(page, path) {
  await page.goto(site.url + path, { waitUntil: "load" });
  await page.addStyleTag({ content: letters });
  await page.evaluate(() => document.fonts.ready);
  // What is drawn by scripts is drawn for the width that the letters leave.
  await page.evaluate(() => window.dispatchEvent(new Event("resize")));
  await page.waitForTimeout(150);
  const whole = await page.screenshot({ fullPage: true, animations: "disabled", caret: "hide", scale: "css" });
  return Buffer.from(await small.evaluate(shrunk, { png: whole.toString("base64"), scale: SCALE }), "base64");
}

/// In the browser: the mean of each square, in sixteen steps, which keep the files small.
async function shrunk({ png, scale }) {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const [width, height] = [Math.floor(image.width / scale), Math.floor(image.height / scale)];
  const full = new OffscreenCanvas(image.width, image.height).getContext("2d");
  full.drawImage(image, 0, 0);
  const from = full.getImageData(0, 0, image.width, image.height).data;
  const canvas = new OffscreenCanvas(width, height), to = canvas.getContext("2d"), out = to.createImageData(width, height);
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) {
    const sum = [0, 0, 0];
    for (let dy = 0; dy < scale; dy += 1) for (let dx = 0; dx < scale; dx += 1) {
      const at = ((y * scale + dy) * image.width + x * scale + dx) * 4;
      for (let c = 0; c < 3; c += 1) sum[c] += from[at + c];
    }
    const at = (y * width + x) * 4;
    for (let c = 0; c < 3; c += 1) out.data[at + c] = Math.min(255, Math.round(sum[c] / (scale * scale * 16)) * 16);
    out.data[at + 3] = 255;
  }
  to.putImageData(out, 0, 0);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
  return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
}

/// In the browser: how far two pictures are apart.
async function apart({ one, two, differs, tile }) {
  const read = async (png) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  };
  const [a, b] = [await read(one), await read(two)];
  const height = Math.min(a.height, b.height), width = Math.min(a.width, b.width);
  const tiles = new Map();
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) {
    const [i, k] = [(y * a.width + x) * 4, (y * b.width + x) * 4];
    if ([0, 1, 2].some((c) => Math.abs(a.data[i + c] - b.data[k + c]) > differs)) {
      const key = `${Math.floor(x / tile)} ${Math.floor(y / tile)}`;
      tiles.set(key, (tiles.get(key) ?? 0) + 1);
    }
  }
  const spots = [...tiles.values()].reduce((sum, n) => sum + n, 0), crowd = Math.max(0, ...tiles.values()) / (tile * tile);
  return { spots: spots / (width * height), crowd, height: Math.abs(a.height - b.height) / Math.max(a.height, b.height), width: a.width - b.width };
}

const distance = (one, two) => small.evaluate(apart, { one: one.toString("base64"), two: two.toString("base64"), differs: DIFFERS, tile: TILE });
const same = (d) => d.width === 0 && d.height <= HEIGHT && d.spots <= SPOTS && d.crowd <= CROWD;
const words = (d) => `${(d.spots * 100).toFixed(2)} % of its spots differ, of one tile ${(d.crowd * 100).toFixed(0)} %, its height by ${(d.height * 100).toFixed(2)} %`;

for (const [name, look] of Object.entries(LOOKS)) {
  test(`every page, ${name}, looks as it was kept`, { timeout: 180_000 }, async () => {
    const context = await browser.newContext(look);
    const page = await context.newPage();
    const wrong = [];
    for (const path of PAGES_SEEN) {
      const file = `${name}${fileName(path)}.png`;
      const now = await seen(page, path);
      if (KEEPS) {
        await mkdir(KEPT, { recursive: true });
        await writeFile(join(KEPT, file), now);
        continue;
      }
      const d = await distance(now, await readFile(join(KEPT, file)));
      if (!same(d)) wrong.push(`${path}: ${words(d)}`);
      if (SHOTS && !same(d)) await writeFile(join(SHOTS, `differs-${file}`), now);
    }
    assert.deepEqual(wrong, [], "look at them (--shots DIR), and keep them by PICTURES=keep if they are as they should be");
    await context.close();
  });
}

test("a picture is kept of each page and of nothing else", async () => {
  const all = Object.keys(LOOKS).flatMap((name) => PAGES_SEEN.map((path) => `${name}${fileName(path)}.png`));
  assert.deepEqual((await readdir(KEPT)).sort(), all.sort());
});

// Otherwise the tests above could not fail.
for (const [what, css] of [
  ["a section is missing", "#planes{display:none}"],
  ["colours are lost", "*{color:#000!important;background:#fff!important}"],
  ["two columns became one", "main *{display:block!important}"],
  ["all is moved", "main{transform:translate(24px,16px)}"],
  ["curves are missing", "#planes canvas,#planes svg{visibility:hidden}"],
]) {
  test(`it is seen when ${what}`, async () => {
    const page = await browser.newPage({ ...LOOKS.dark });
    const path = "/incidents/both-planes";
    const whole = await seen(page, path);
    const again = await seen(page, path);
    assert.ok(same(await distance(whole, again)), "twice the same page");
    await page.goto("about:blank");
    await page.route("**/*.css*", async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, body: `${await answer.text()}\n${css}` });
    });
    const d = await distance(whole, await seen(page, path));
    assert.ok(!same(d), words(d));
    await page.close();
  });
}
