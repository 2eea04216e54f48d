/* The map: a row for each NodePool, a tile for each node. Size is price, the filled part is use, colour and border are
   state. Tiles are kept from one look to the next and only what differs is written, so that thousands cost little. */
import { $, make, money, percent, plural, count, toPool } from "./dom.js";

export const KINDS = { needs: "needs a person", leaving: "leaves", coming: "comes", marked: "drifted or held", ready: "ready", other: "not ours" };
export function kindOf(node, needing) {
  if (needing.has(node.name) || needing.has(node.claim)) return "needs";
  if (node.state === "not ours") return "other";
  if (/^(terminating|disrupting)/.test(node.state)) return "leaving";
  if (node.state !== "ready") return "coming";
  return node.what ? "marked" : "ready";
}
const rows = new Map();
const useOf = node => Math.min(1, Math.max(node.cpuShare, node.memoryShare));
const say = (node, kind) => `${node.name}: ${KINDS[kind]}, ${[node.type, node.capacityType, node.zone].filter(Boolean).join(", ")}, ${node.price === null ? "price not known" : money(node.price, 4) + "/h"}, cpu ${percent(node.cpuShare)}, memory ${percent(node.memoryShare)}, ${plural(node.pods, "pod")}${node.what ? ", " + node.what : ""}`;

function write(tile, node, kind, side) {
  const look = `${kind}|${side}|${percent(useOf(node))}|${node.price}|${node.what}|${node.pods}|${node.name}|${node.state}`;
  if (tile.look === look) return;
  tile.look = look;
  tile.className = "tile " + kind;
  tile.href = "#/node/" + encodeURIComponent(node.claim || node.name);
  tile.style.setProperty("--side", side + "px");
  tile.style.setProperty("--use", percent(useOf(node)));
  tile.setAttribute("aria-label", say(node, kind));
}
/* A few milliseconds of each frame, so that a look at thousands of nodes holds up no key and no pointer. */
const FRAME = 6;
let waiting = [];
function writeSome() {
  const until = performance.now() + FRAME;
  while (waiting.length && performance.now() < until) for (const each of waiting.splice(-50)) write(...each);
  if (waiting.length) requestAnimationFrame(writeSome);
}
const titled = event => { if (event.target.matches(".tile")) event.target.title = event.target.ariaLabel; };

/* Next to it in the row, or nearest to it in the line above or below, in whatever row that is. */
function move(event) {
  const tile = event.target, tiles = [...$("map").querySelectorAll(".tile")], at = tiles.indexOf(tile);
  let next = { ArrowRight: tiles[at + 1], ArrowLeft: tiles[at - 1], Home: tiles[0], End: tiles.at(-1) }[event.key];
  const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (down) {
    const from = tile.getBoundingClientRect();
    let line = null, least = Infinity;
    for (let i = at + down; tiles[i]; i += down) {
      const box = tiles[i].getBoundingClientRect();
      if ((box.bottom - from.bottom) * down < 2) continue;
      line ??= box.bottom;
      if (Math.abs(box.bottom - line) > 2) break;
      if (Math.abs(box.left - from.left) < least) { least = Math.abs(box.left - from.left); next = tiles[i]; }
    }
  }
  if (!next) return;
  event.preventDefault();
  focusable(next);
  next.focus();
}
function focusable(tile) {
  for (const each of $("map").querySelectorAll(".tile[tabindex='0']")) each.tabIndex = -1;
  tile.tabIndex = 0;
}

function rowOf(pool) {
  let row = rows.get(pool);
  if (!row) {
    const tiles = make("div", { class: "tiles" }), about = make("span", { class: "soft" });
    const element = make("div", { class: "map-row", role: "group" }, make("div", { class: "map-head" }, pool.startsWith("\0") ? "not ours" : toPool(pool) || "no NodePool", about), tiles);
    rows.set(pool, row = { element, tiles, about, byName: new Map(), order: "" });
  }
  return row;
}

/* `found`: the list of nodes; `needing`: the names of those that need a person. */
export function showMap(found, needing, width) {
  const pools = new Map(found.pools.map(pool => [pool, []]));
  for (const node of found.nodes) {
    const pool = node.state === "not ours" ? "\0" : node.pool;
    if (!pools.has(pool)) pools.set(pool, []);
    pools.get(pool).push(node);
  }
  const priced = found.nodes.filter(node => node.price), all = priced.reduce((sum, node) => sum + node.price, 0);
  const usual = all / (priced.length || 1) || 1, area = Math.max(120, width - 150) * Math.min(640, 120 + found.nodes.length / 3);
  const scale = Math.sqrt(area / (usual * (found.nodes.length || 1)));
  const sideOf = node => Math.round(Math.max(6, Math.min(46, scale * Math.sqrt(node.price || usual) - 2)));
  const counts = {}, idle = !waiting.length;
  waiting = [];
  for (const [pool, nodes] of pools) {
    const row = rowOf(pool), gone = new Set(row.byName.keys());
    nodes.sort((a, b) => (b.price ?? 0) - (a.price ?? 0) || (a.name < b.name ? -1 : 1));
    for (const node of nodes) {
      const key = node.claim || node.name, kind = kindOf(node, needing);
      counts[kind] = (counts[kind] || 0) + 1;
      if (!row.byName.has(key)) row.byName.set(key, make("a", { class: "tile", tabindex: -1 }));
      gone.delete(key);
      waiting.push([row.byName.get(key), node, kind, sideOf(node)]);
    }
    for (const key of gone) { row.byName.get(key).remove(); row.byName.delete(key); }
    const order = nodes.map(node => node.claim || node.name);
    if (row.order !== order.join(" ")) { row.tiles.append(...order.map(key => row.byName.get(key))); row.order = order.join(" "); }
    const price = nodes.reduce((sum, node) => sum + (node.price || 0), 0);
    row.about.textContent = nodes.length ? `${plural(nodes.length, "node")} · ${money(price)}/h` : "no nodes";
    row.element.setAttribute("aria-label", `${pool === "\0" ? "Nodes that are not ours" : "NodePool " + pool}: ${row.about.textContent}`);
  }
  for (const pool of [...rows.keys()]) if (!pools.has(pool)) rows.delete(pool);
  const shown = [...pools.keys()].sort((a, b) => (a === "\0") - (b === "\0") || (a < b ? -1 : 1)).map(pool => rows.get(pool).element);
  const box = $("map");
  if (!box.firstChild) box.append(make("div", { class: "legend" }), make("div", { class: "map-rows", on: { keydown: move, pointerover: titled, focusin: event => event.target.matches(".tile") && focusable(event.target) } }));
  const [legend, body] = box.children;
  legend.replaceChildren(...Object.entries(KINDS).filter(([kind]) => counts[kind]).map(([kind, words]) => make("span", {}, make("i", { class: "tile " + kind, css: { "--side": "12px", "--use": "60%" } }), ` ${words} ${count(counts[kind])}`)), make("span", { class: "soft" }, "size: price · filled: use of cpu or memory, the larger"));
  if (body.children.length !== shown.length || shown.some((each, i) => body.children[i] !== each)) body.replaceChildren(...shown);
  if (!body.querySelector(".tile[tabindex='0']") && body.querySelector(".tile")) body.querySelector(".tile").tabIndex = 0;
  waiting.reverse();
  if (idle) writeSome();
}
