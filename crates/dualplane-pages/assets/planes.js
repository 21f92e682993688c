// Both planes as pictures that zoom: they replace those that the server drew, with the same lines on the same clock.
// The pointer, the keys and the buttons do the same; what stands under the cursor is told in words.
const root = document.querySelector(".planes[data-planes]");
if (root && typeof uPlot === "function") draw(root, JSON.parse(root.dataset.planes));

function draw(root, data) {
  const style = () => getComputedStyle(document.documentElement);
  const colour = (name) => style().getPropertyValue(`--${name}`).trim();
  const from = data.from / 1000, to = Math.max(data.to / 1000, data.from / 1000 + 1);
  const view = { min: from, max: to };
  const HEIGHT = 158;
  const charts = [];
  let moving = false;

  // Words.
  const bytes = (v) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (v >= 1024 && i < units.length - 1) { v /= 1024; i += 1; }
    return `${i === 0 ? v : v.toFixed(2).replace(/\.00$/, "")} ${units[i]}`;
  };
  const show = (v, unit) => v == null ? "–"
    : unit === "bytes" ? bytes(v) : unit === "share" ? `${Math.round(v * 100)} %` : String(Math.round(v * 10) / 10);
  const before = (s) => {
    const ms = Math.round(s * 1000 - data.end);
    const sign = ms > 0 ? "+" : "−", d = Math.abs(ms);
    if (d === 0) return "the end";
    if (d < 1000) return `${sign}${d} ms`;
    if (d < 120000) return `${sign}${Math.round(d / 1000)} s`;
    return `${sign}${Math.floor(d / 60000)} min ${String(Math.floor(d % 60000 / 1000)).padStart(2, "0")} s`;
  };

  // Where the lines of a panel have a value, on one clock.
  const joined = (panel) => uPlot.join(panel.lines.map((l) => [l.at.map((t) => t / 1000), l.values]));

  // The phases as a band above the first picture, and a thin one above the others; marks go over the lines.
  const tint = { load: "load", profile: "profile", traffic: "traffic", idle: "idle" };
  const markColour = { first: "bad", moment: "ink", xid: "hardware", start: "good", event: "soft" };
  const ground = (named) => (u) => {
    const { left, top, width } = u.bbox;
    const px = devicePixelRatio, high = (named ? 18 : 5) * px;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top - high, width, high);
    u.ctx.clip();
    u.ctx.font = `${11 * px}px system-ui`;
    u.ctx.textAlign = "center";
    u.ctx.textBaseline = "middle";
    for (const p of data.phases) {
      const a = Math.max(left, u.valToPos(p.from / 1000, "x", true));
      const b = Math.min(left + width, u.valToPos(p.to / 1000, "x", true));
      if (b <= a) continue;
      u.ctx.fillStyle = colour(tint[p.phase] ?? "idle");
      u.ctx.fillRect(a, top - high, b - a - px, high);
      if (named && b - a > 46 * px) {
        u.ctx.fillStyle = colour("ink");
        u.ctx.fillText(p.phase, (a + b) / 2, top - high / 2);
      }
    }
    u.ctx.restore();
  };
  const over = (panel) => (u) => {
    const { left, top, width, height } = u.bbox;
    const px = devicePixelRatio;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    if (panel.limit != null) {
      const y = Math.round(u.valToPos(panel.limit, "y", true));
      u.ctx.strokeStyle = colour("bad");
      u.ctx.lineWidth = 1.5 * px;
      u.ctx.setLineDash([6 * px, 4 * px]);
      u.ctx.beginPath();
      u.ctx.moveTo(left, y);
      u.ctx.lineTo(left + width, y);
      u.ctx.stroke();
    }
    for (const m of data.marks) {
      const x = Math.round(u.valToPos(m.at / 1000, "x", true));
      u.ctx.strokeStyle = colour(markColour[m.kind] ?? "soft");
      u.ctx.lineWidth = (m.kind === "moment" || m.kind === "first" ? 1.6 : 1) * px;
      u.ctx.setLineDash(m.kind === "moment" ? [] : [3 * px, 3 * px]);
      u.ctx.beginPath();
      u.ctx.moveTo(x, top);
      u.ctx.lineTo(x, top + height);
      u.ctx.stroke();
    }
    u.ctx.restore();
  };

  // What is told of the moment under the cursor.
  const tip = document.createElement("p");
  tip.className = "tip";
  tip.setAttribute("aria-live", "polite");
  const rest = "Drag over a stretch to zoom. Keys: ← → move, + − zoom, Home End, 0 shows all.";
  tip.textContent = rest;
  const held = (line, s) => {
    let value = null;
    for (let i = 0; i < line.at.length && line.at[i] / 1000 <= s + 1e-6; i += 1) value = line.values[i];
    return value;
  };
  const short = { "Host RAM of the container": "host RAM,", VRAM: "VRAM,", "KV cache": "KV cache", Requests: "requests" };
  const tell = (s) => {
    const parts = [];
    const part = (strong, word, name) => {
      const span = document.createElement("span");
      if (name) {
        const key = document.createElement("i");
        key.style.background = colour(name);
        span.append(key);
      }
      const b = document.createElement("b");
      b.textContent = strong;
      span.append(b, word);
      parts.push(span);
    };
    const at = new Date(s * 1000).toISOString();
    const phase = data.phases.find((p) => p.from <= s * 1000 && s * 1000 <= p.to);
    part(before(s), ` (${at.slice(11, 19)})${phase ? `, ${phase.phase}` : ""}`);
    for (const panel of data.panels) {
      for (const l of panel.lines) part(show(held(l, s), panel.unit), ` ${short[panel.title] ?? panel.title} ${l.label}`, l.colour);
    }
    const near = (view.max - view.min) / 60;
    for (const m of data.marks.filter((m) => Math.abs(m.at / 1000 - s) <= near)) part(m.text, "", markColour[m.kind]);
    tip.replaceChildren(...parts);
  };

  const look = (min, max) => {
    view.min = Math.max(from, min);
    view.max = Math.min(to, max);
    if (view.max - view.min < 0.5) view.max = Math.min(to, view.min + 0.5);
    moving = true;
    for (const c of charts) c.setScale("x", { min: view.min, max: view.max });
    moving = false;
    root.dataset.view = `${view.min} ${view.max}`;
  };

  const sync = uPlot.sync("planes");
  const width = () => Math.max(280, root.clientWidth - 24);
  const make = (panel, i) => {
    const box = document.createElement("div");
    box.className = "figure";
    const title = document.createElement("h3");
    title.textContent = panel.title;
    const place = document.createElement("div");
    const legend = document.createElement("p");
    legend.className = "legend";
    for (const l of panel.lines) {
      const span = document.createElement("span");
      const key = document.createElement("i");
      key.style.cssText = `display:inline-block;width:14px;height:3px;margin-right:6px;vertical-align:middle;background:${colour(l.colour)}`;
      span.append(key, `${l.label}, most ${show(Math.max(...l.values), panel.unit)}`);
      legend.append(span);
    }
    if (panel.limit != null) {
      const span = document.createElement("span");
      span.textContent = `- - ${panel.limit_word} ${show(panel.limit, panel.unit)}`;
      legend.append(span);
    }
    box.append(title, place, legend);
    const most = Math.max(...panel.lines.flatMap((l) => l.values), 0);
    const top = panel.unit === "share" ? 1 : Math.max(most, panel.limit != null && panel.limit <= most * 4 ? panel.limit : 0, 1) * 1.06;
    const axis = { stroke: () => colour("soft"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const chart = new uPlot({
      width: width(), height: HEIGHT, padding: [i === 0 ? 24 : 10, 30, 0, 0],
      cursor: { sync: { key: sync.key, setSeries: false }, drag: { x: true, y: false, setScale: true }, points: { size: 6 } },
      legend: { show: false },
      scales: { x: { time: false, min: from, max: to }, y: { range: [0, top] } },
      axes: [
        { ...axis, size: 28, splits: () => clock(), values: (u, ticks) => ticks.map(before) },
        {
          ...axis, size: 74, values: (u, ticks) => ticks.map((v) => show(v, panel.unit)),
          splits: () => [0, 1, 2, 3, 4].map((i) => nice(top, panel.unit) * i).filter((v) => v <= top),
        },
      ],
      series: [{}, ...panel.lines.map((l) => ({ label: l.label, stroke: () => colour(l.colour), width: 1.8, spanGaps: true, points: { show: l.at.length < 2 } }))],
      hooks: {
        drawClear: [ground(i === 0)],
        draw: [over(panel)],
        setScale: [(u, key) => {
          if (key === "x" && !moving && u.status === 1) look(u.scales.x.min, u.scales.x.max);
        }],
        setCursor: [(u) => {
          if (u.cursor.left >= 0 && u.cursor.event) tell(u.posToVal(u.cursor.left, "x"));
        }],
      },
    }, joined(panel), place);
    charts.push(chart);
    return box;
  };

  // Moments of the axis are round in what is left until the end.
  const clock = () => {
    const room = Math.max(2, Math.floor(width() / 105));
    const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
    const step = steps.find((s) => (view.max - view.min) / s <= room) ?? 7200;
    const end = data.end / 1000, out = [];
    for (let k = Math.ceil((view.min - end) / step); end + k * step <= view.max + 1e-6; k += 1) out.push(end + k * step);
    return out;
  };

  // A quarter of the height, rounded down to what reads well.
  const nice = (top, unit) => {
    const base = unit === "bytes" ? 1024 ** Math.floor(Math.log2(Math.max(top / 4, 1)) / 10) : 1;
    const raw = top / 4 / base, ten = 10 ** Math.floor(Math.log10(raw));
    const step = [5, 4, 3, 2.5, 2, 1.5, 1].find((s) => s * ten <= raw) ?? 1;
    return unit === "count" ? Math.max(1, Math.floor(step * ten)) : step * ten * base;
  };

  // Buttons for those who have no keys and no pointer that drags.
  const tools = document.createElement("div");
  tools.className = "zoom";
  const button = (word, act) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = word;
    b.addEventListener("click", act);
    tools.append(b);
  };
  let cursor = Math.min(to, Math.max(from, data.end / 1000));
  const zoom = (factor) => {
    const half = (view.max - view.min) * factor / 2;
    const middle = Math.min(Math.max(cursor, view.min), view.max);
    look(middle - half, middle + half);
  };
  const last = (s) => look(data.end / 1000 - s, Math.min(to, data.end / 1000 + s / 20));
  button("Zoom in", () => zoom(0.5));
  button("Zoom out", () => zoom(2));
  if (to - from > 90) button("Last minute", () => last(60));
  if (to - from > 450) button("Last 5 minutes", () => last(300));
  button("All", () => look(from, to));

  const point = (s) => {
    cursor = Math.min(to, Math.max(from, s));
    if (cursor < view.min || cursor > view.max) {
      const half = (view.max - view.min) / 2;
      look(cursor - half, cursor + half);
    }
    for (const c of charts) c.setCursor({ left: c.valToPos(cursor, "x"), top: 20 });
    tell(cursor);
  };
  root.tabIndex = 0;
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Both planes on one time axis. Left and right move, plus and minus zoom, 0 shows all.");
  root.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target !== root) return;
    const step = (view.max - view.min) / (e.shiftKey ? 10 : 100);
    const acts = {
      ArrowLeft: () => point(cursor - step), ArrowRight: () => point(cursor + step),
      Home: () => point(view.min), End: () => point(view.max),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => look(from, to), Escape: () => look(from, to),
    };
    if (acts[e.key]) {
      e.preventDefault();
      acts[e.key]();
    }
  });

  // The words have their room from the start: pictures that move under the pointer cannot be pointed at.
  const room = () => {
    const words = [...tip.childNodes];
    tip.style.minHeight = "";
    tell(data.end / 1000);
    tip.style.minHeight = `${tip.offsetHeight + 4}px`;
    tip.replaceChildren(...words);
  };

  const boxes = data.panels.map(make);
  root.replaceChildren(tools, tip, ...boxes);
  root.classList.add("drawn");
  look(from, to);
  room();
  let asked = 0;
  new ResizeObserver(() => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(() => {
      room();
      for (const c of charts) if (c.width !== width()) c.setSize({ width: width(), height: HEIGHT });
    });
  }).observe(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const c of charts) c.redraw(); });
  root.addEventListener("mouseleave", () => { tip.textContent = rest; });
}
