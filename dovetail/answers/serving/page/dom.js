/* The one place where the page makes elements. What comes from the cluster becomes text nodes and attributes, and never
   markup; an address becomes a link only where it leads to a view of this page or to the web. */
const SVG = "http://www.w3.org/2000/svg", DRAWN = new Set(["svg", "rect", "path", "text", "line", "circle"]);
export const $ = id => document.getElementById(id);

export function make(tag, given = {}, ...children) {
  const found = DRAWN.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [name, act] of Object.entries(value)) found.addEventListener(name, act);
    else if (key === "css") for (const [name, text] of Object.entries(value)) found.style.setProperty(name, text);
    else if (key !== "href" || /^(#\/|https?:\/\/)/.test(value)) found.setAttribute(key, value === true ? "" : value);
  }
  found.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== ""));
  return found;
}
export const put = (id, ...children) => $(id).replaceChildren(...children.flat(Infinity).filter(Boolean));
export const soft = text => make("p", { class: "soft" }, text);
export const failed = error => make("p", { class: "needs", role: "alert" }, error.message);
export const room = id => Math.max(280, $(id).clientWidth);

/* Figures */
export const money = (amount, digits = 2) => (Number(amount) < 0 ? "−$" : "$") + Math.abs(Number(amount)).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const count = number => Number(number).toLocaleString("en");
export const plural = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;
export const share = use => use.room ? use.used / use.room : 0;
export const percent = part => Math.round(part * 100) + "%";
export const cut = (text, letters) => text.length > letters ? text.slice(0, letters - 1) + "…" : text;

/* Times: relative, with the moment behind them; by the cluster's clock, whatever this machine's says */
let ahead = 0;
export const moment = text => Date.parse(text) / 1000;
export const now = () => Date.now() / 1000 + ahead;
export const clockIs = text => { ahead = moment(text) - Date.now() / 1000; };
export function span(seconds) {
  let left = Math.max(0, Math.round(seconds)); const parts = [];
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]]) {
    const whole = Math.floor(left / size); left -= whole * size;
    if (whole) parts.push(whole + unit);
  }
  return parts.slice(0, 2).join("") || "0s";
}
const since = at => { const gone = now() - at; return gone < 0 ? "in " + span(-gone) : gone < 1 ? "now" : span(gone) + " ago"; };
const age = at => span(now() - at);
const SHOWN = { since, age };
export function when(text, as = "since") {
  if (!text) return "";
  const at = moment(text);
  if (Number.isNaN(at)) return text;
  return make("time", { datetime: text, title: text.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC"), "data-as": as }, SHOWN[as](at));
}
setInterval(() => {
  for (const each of document.querySelectorAll("time[data-as]")) {
    const text = SHOWN[each.dataset.as](moment(each.dateTime));
    if (each.textContent !== text) each.textContent = text;
  }
}, 1000);

/* Links between what there is */
export const toNode = (name, text = name) => name ? make("a", { href: "#/node/" + encodeURIComponent(name) }, text) : "";
export const toPool = name => name ? make("a", { href: "#/pool/" + encodeURIComponent(name) }, name) : "";
export const toPod = name => make("a", { href: "#/pod/" + name.split("/").map(encodeURIComponent).join("/") }, name);
let workflows = "";
export const workflowsAre = address => { workflows = address || ""; };
export const toWorkflow = (id, text = id) => !id ? text : workflows ? make("a", { href: workflows + encodeURIComponent(id), rel: "noreferrer", target: "_blank", title: "in Temporal's Web UI" }, text, " ↗") : text;
export const some = (all, shown, most = 8) => !all.length ? "" : [all.slice(0, most).flatMap((each, i) => [i ? ", " : "", shown(each)]), all.length > most ? `, and ${count(all.length - most)} more` : ""];

/* Commands to copy */
export function typed(command) {
  if (!command) return "";
  const copy = async () => {
    try { await navigator.clipboard.writeText(command); $("said").textContent = "copied: " + command; }
    catch { getSelection().selectAllChildren(code); $("said").textContent = "marked, to be copied: " + command; }
  };
  const code = make("code", {}, command);
  return make("span", { class: "typed" }, code, make("button", { class: "copy", "aria-label": "Copy " + command, title: "Copy", on: { click: copy } },
    make("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, make("rect", { x: 1.5, y: 1.5, width: 9, height: 10, rx: 1.5 }), make("rect", { x: 5.5, y: 4.5, width: 9, height: 10, rx: 1.5 }))));
}

/* Lists of facts */
export function table(label, heads, rows, none = "nothing") {
  if (!rows.length) return soft(none);
  const kind = (head, cell) => [head.right ? "right" : head.text ? "text" : "", cell?.tone || ""].join(" ").trim() || null;
  const inside = cell => cell?.said ?? cell ?? "";
  return make("table", { "aria-label": label },
    make("thead", {}, make("tr", {}, heads.map(each => make("th", { scope: "col", class: each.right ? "right" : null }, each.name)))),
    make("tbody", {}, rows.map(row => make("tr", {}, row.map((cell, i) => make("td", { "data-head": heads[i].name, class: kind(heads[i], cell) }, inside(cell)))))));
}
export const facts = pairs => make("dl", {}, pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined && !(Array.isArray(value) && !value.length))
  .map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
export const part = (title, ...inside) => make("div", { class: "part" }, make("h3", {}, title), inside);
export const list = lines => make("ul", {}, lines.map(line => make("li", {}, line)));
export const card = (name, value, more = "") => make("div", { class: "card" }, make("span", { class: "soft" }, name), make("b", {}, value), more ? make("span", { class: "soft" }, more) : null);
export const use = value => make("span", {}, make("meter", { min: 0, max: 1, value: Math.min(1, value), "aria-hidden": "true" }), " " + percent(value));
export const notes = found => [...(found.pauses ?? []).map(line => make("p", { class: "waits" }, line)), ...(found.notes ?? []).map(line => soft("note: " + line))];
