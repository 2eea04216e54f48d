/* Plots without a library: an SVG with what it says in words, for who does not see it. */
import { make, soft, span, now, cut } from "./dom.js";

const STEPS = [60, 300, 900, 3600, 7200, 14400, 21600, 43200, 86400, 2 * 86400, 7 * 86400];
const clock = at => new Date(at * 1000).toISOString().slice(11, 16);
const day = at => new Date(at * 1000).toISOString().slice(5, 10);

/* A line over time from zero up. The arrow keys and the pointer read single points. */
export function line(label, points, shown, width, steps = false) {
  if (points.length < 2) return make("figure", {}, make("figcaption", {}, label), soft("not enough points yet"));
  const height = 130, foot = height - 20, high = Math.max(...points.map(p => p.value)) || 1;
  const begin = points[0].at, end = points.at(-1).at, last = points.at(-1).value;
  const x = at => (at - begin) / ((end - begin) || 1) * (width - 2) + 1, y = value => foot - Math.max(0, value) / high * (foot - 16);
  const path = points.map((p, i) => i === 0 ? `M${x(p.at).toFixed(1)} ${y(p.value).toFixed(1)}` : steps ? `H${x(p.at).toFixed(1)}V${y(p.value).toFixed(1)}` : `L${x(p.at).toFixed(1)} ${y(p.value).toFixed(1)}`).join("");
  const step = STEPS.find(each => (end - begin) / each <= width / 80) ?? STEPS.at(-1), write = step >= 86400 ? day : clock;
  const low = Math.min(...points.map(p => p.value));
  const said = make("output", {}, shown(last)), dot = make("circle", { r: 3.5, cx: x(end), cy: y(last) });
  let chosen = points.length - 1;
  const choose = i => {
    chosen = Math.max(0, Math.min(points.length - 1, i));
    const { at, value } = points[chosen];
    dot.setAttribute("cx", x(at)); dot.setAttribute("cy", y(value));
    said.textContent = `${shown(value)}, ${span(now() - at)} ago`;
  };
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: 0, class: "plot",
    "aria-label": `${label}: from ${shown(points[0].value)} to ${shown(last)}, lowest ${shown(low)}, highest ${shown(high)}`,
    on: {
      keydown: event => { const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key]; if (by) { choose(chosen + by); event.preventDefault(); } },
      pointermove: event => {
        const at = begin + (event.offsetX / svg.clientWidth) * (end - begin);
        choose(points.reduce((best, p, i) => Math.abs(p.at - at) < Math.abs(points[best].at - at) ? i : best, 0));
      },
      pointerleave: () => { choose(points.length - 1); said.textContent = shown(last); },
    } },
    make("line", { x1: 0, x2: width, y1: foot, y2: foot }), make("path", { class: "area", d: `${path}V${foot}H${x(begin)}Z` }),
    make("path", { class: "stroke", d: path }), dot, make("text", { x: 3, y: 10 }, shown(high)),
    Array.from({ length: Math.floor((end - begin) / step) + 1 }, (_, i) => (Math.ceil(begin / step) + i) * step).filter(at => x(at) > 16 && x(at) < width - 16).map(at =>
      make("text", { x: x(at), y: height - 5, "text-anchor": "middle" }, write(at))), make("text", { x: width - 2, y: 10, "text-anchor": "end" }, "UTC"));
  return make("figure", {}, make("figcaption", {}, make("span", { class: "soft" }, label), " ", said), svg);
}

export function bars(label, rows, shown) {
  if (!rows.length) return soft("nothing");
  const most = Math.max(...rows.map(r => Math.abs(r.value)), 0.01);
  return make("div", { class: "bars", role: "img", "aria-label": `${label}: ${rows.map(r => `${r.name} ${shown(r.value)}`).join(", ")}` },
    rows.map(r => make("div", { class: "bar-row" }, make("span", { title: r.name }, cut(r.name, 40)),
      make("span", { class: "track" }, make("span", { class: r.value < 0 ? "bar lost" : "bar", css: { width: `${Math.abs(r.value) / most * 100}%` } })), make("span", { class: "right" }, shown(r.value)))));
}

/* Steps one below another, each label in a column of its own, so that no bar can run over it. */
export function timeline(rows, most = 60) {
  if (!rows.length) return soft("no steps");
  const shown = rows.slice(-most), begin = Math.min(...shown.map(r => r.from)), end = Math.max(...shown.map(r => r.to), begin + 1);
  const part = at => (at - begin) / (end - begin) * 100;
  return make("ol", { class: "timeline", "aria-label": "Steps" }, shown.map(r => make("li", {},
    make("span", { class: "label" }, r.name),
    make("span", { class: "track", title: `${new Date(r.from * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC` },
      make("span", { class: r.runs ? "bar runs" : "bar", css: { left: `${part(r.from)}%`, width: `${Math.max(0.4, part(r.to) - part(r.from))}%` } })),
    make("span", { class: "right" }, span(r.to - r.from)))));
}
