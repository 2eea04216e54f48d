/* The list of nodes: filtered, grouped, ordered and paged here. */
import { $, make, put, money, percent, use, when, plural, toPool, toNode, typed, facts, share, room } from "./dom.js";
import { known } from "./status.js";
import words from "./words.js";

const { columns: COLUMNS, groups: GROUPS, fields: FIELDS, words: WORDS } = words.nodes;
const LARGEST_FIRST = new Set(COLUMNS.filter(each => each.isLargestFirst).map(each => each.field));
const RIGHT = new Set(["age", "price", "count"]), PAGE = 100, NOT_OURS = "not ours";
const chosen = { sort: "price", turned: false, first: 0 };
const short = name => name.replace(/\.(compute\.internal|[a-z0-9-]+\.compute\.internal|ec2\.internal)$/, "");

/* The same terms as those of dovetail top and nodes -l: dovetail/answers/status/terms.py. */
export function matches(node, text) {
  return text.split(/[,\s]+/).filter(Boolean).every(word => {
    const [, key, sign, wanted] = /^([^=!~()]+)(!=|==?|~)([^=!~()]*)$/.exec(word) || [];
    if (key !== undefined) {
      const value = Object.hasOwn(node.labels, key) ? node.labels[key] : Object.hasOwn(FIELDS, key) ? String(node[FIELDS[key]]).replaceAll(" ", "-") : null;
      if (sign === "~") return value !== null && String(value).toLowerCase().includes(wanted.toLowerCase());
      return (value === wanted) === (sign !== "!=");
    }
    if (/^![^=!~()]+$/.test(word)) return !Object.hasOwn(node.labels, word.slice(1));
    return WORDS.some(each => String(node[each] ?? "").toLowerCase().includes(word.toLowerCase()));
  });
}
const WRITTEN = {
  age: value => when(value, "age"),
  price: (value, node) => value === null ? (node.state === NOT_OURS ? "–" : "?") : value.toFixed(4),
  share: use,
  what: (value, node) => value || (node.stays ? "stays: " + node.stays : ""),
};
const FIELD = { name: (value, node) => make("span", { title: value }, toNode(node.claim || value, short(value))), pool: toPool };
function cell(node, { field, kind, head, isLabelled }) {
  const value = node[field] ?? null, written = FIELD[field] ?? WRITTEN[kind] ?? (each => String(each ?? ""));
  const moves = field === "state" && node.state !== "ready" && node.state !== NOT_OURS;
  const tone = RIGHT.has(kind) ? "right" : kind === "what" ? "text" + (value ? " waits" : "") : moves ? "goes" : null;
  return make("td", { class: tone, "data-head": isLabelled ? head : null }, written(value, node));
}
export function showNodes() {
  if (!known.nodes || $("view-nodes").hidden) return;
  const key = chosen.sort, sign = (LARGEST_FIRST.has(key) ? -1 : 1) * (chosen.turned ? -1 : 1), group = $("group").value;
  const rows = known.nodes.nodes.filter(node => matches(node, $("filter").value));
  const order = (a, b) => { const x = a[key] ?? -1, y = b[key] ?? -1; return x < y ? -sign : x > y ? sign : a.name < b.name ? -1 : 1; };
  rows.sort(group ? (a, b) => a[group] < b[group] ? -1 : a[group] > b[group] ? 1 : order(a, b) : order);
  chosen.first = Math.max(0, Math.min(chosen.first, Math.floor((rows.length - 1) / PAGE) * PAGE));
  const shown = rows.slice(chosen.first, chosen.first + PAGE), body = [];
  let last = null;
  for (const node of shown) {
    if (group && node[group] !== last) {
      last = node[group];
      const members = rows.filter(each => each[group] === last);
      body.push(make("tr", { class: "group" }, make("td", { colspan: COLUMNS.length }, `${last || "none"}: ${plural(members.length, "node")}, ${money(members.reduce((sum, each) => sum + (each.price || 0), 0))}/h`)));
    }
    body.push(make("tr", { "data-claim": node.claim || node.name }, COLUMNS.map(column => cell(node, column))));
  }
  const turn = field => { chosen.turned = chosen.sort === field && !chosen.turned; chosen.sort = field; showNodes(); };
  const heads = COLUMNS.map(({ head, field, kind }) => make("th", { scope: "col", class: RIGHT.has(kind) ? "right" : null, "aria-sort": field === key ? (sign > 0 ? "ascending" : "descending") : "none" },
    make("button", { "data-sort": field, on: { click: () => turn(field) } }, head)));
  const { sort } = document.activeElement?.dataset ?? {}, { claim } = document.activeElement?.closest("tr[data-claim]")?.dataset ?? {};
  put("nodes", make("table", { "aria-label": "Nodes", "aria-rowcount": rows.length, class: "nodes" }, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, body)));
  (claim ? document.querySelector(`tr[data-claim="${CSS.escape(claim)}"] a`) : sort ? document.querySelector(`[data-sort=${sort}]`) : null)?.focus();
  $("where").textContent = rows.length ? `${chosen.first + 1}–${chosen.first + shown.length} of ${rows.length}` : "no node matches";
}
/* One pool: what it is, above its nodes. */
export function showPool(name) {
  const pool = known.status?.pools.find(each => each.name === name);
  put("pool", ...(name ? [make("h2", {}, "NodePool " + name), pool ? facts([["nodes", `${plural(pool.nodes, "node")}, ${money(pool.price)}/h, ${percent(pool.spot ?? 0)} spot`],
    ["pods", `${pool.pods ?? 0}` + (pool.pendingPods ? `, ${pool.pendingPods} wait` : "")],
    ["use", `cpu ${percent(share(pool.cpu))}, memory ${percent(share(pool.memory))}`], ["drifted", pool.drifted || ""],
    ["may go now", pool.mayGo.map(may => make("div", {}, `${may.reason}: ${may.left} of ${may.allowed}`, may.whyNot ? make("span", { class: "soft" }, ` ${may.whyNot}`) : null))],
    ["next", pool.nextDue ? [pool.next, " ", when(pool.nextDue)] : ""], ["stop it", typed(`dovetail pause --pool ${name}`)]]) : null] : []));
}
export function filterBy(text) { $("filter").value = text; chosen.first = 0; showNodes(); }
$("group").append(...GROUPS.map(each => make("option", { value: each }, each)));
$("filter").addEventListener("input", () => { chosen.first = 0; showNodes(); });
$("group").addEventListener("change", () => { chosen.first = 0; showNodes(); });
$("before").addEventListener("click", () => { chosen.first -= PAGE; showNodes(); });
$("after").addEventListener("click", () => { chosen.first += PAGE; showNodes(); });
