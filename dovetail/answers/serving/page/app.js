/* Views by the part of the address behind #, the stream of states, and what asks when. */
import { $, make, put, failed, when } from "./dom.js";
import { ask } from "./ask.js";
import { known, showStatus, showNodesOnMap, showTrend, troubles } from "./status.js";
import { showNodes, showPool, filterBy } from "./nodes.js";
import { showPods } from "./pods.js";
import { showPlan } from "./ahead.js";
import { showSavings } from "./record.js";
import { showDecisions } from "./decisions.js";
import { offerClusters, showClusters } from "./clusters.js";
import { showOne } from "./one.js";

const PATIENCE = 8000;  // a stream ends every ten minutes and is followed anew
const REST = 20;  // times as long as the list of nodes took, until it is asked for again
const VIEWS = ["status", "nodes", "pods", "plan", "savings", "back", "clusters", "one"];
let view = "status", nodesAt = 0, trendAt = 0, pool = "", asking = false;

export async function askNodes() {
  if (asking) return;
  asking = true;
  const began = performance.now();
  if (!known.nodes) put("nodes", make("p", { class: "soft" }, "asking …"));
  try { known.nodes = await ask("nodes"); showNodes(); if (view === "status") showNodesOnMap(); }
  catch (error) { trouble(error); if (!known.nodes) put("nodes", failed(error)); }
  finally { asking = false; nodesAt = performance.now() + Math.max(4000, REST * (performance.now() - began)); }
}
function look() {
  if (document.hidden) return;
  if ((view === "status" || view === "nodes") && performance.now() >= nodesAt) askNodes();
  if (view === "status" && performance.now() >= trendAt) { trendAt = performance.now() + 30000; showTrend(); }
  if (view === "nodes") showPool(pool);
  if (view === "clusters") showClusters();
}
const LOADS = { status: () => { showNodesOnMap(); }, nodes: () => { showPool(pool); showNodes(); }, pods: showPods, plan: showPlan, savings: showSavings, back: showDecisions, clusters: showClusters };

function route() {
  const [, kind = "status", ...rest] = location.hash.split("/").map(part => { try { return decodeURIComponent(part); } catch { return part; } });
  const name = rest.join("/");
  const wanted = kind === "pool" ? "nodes" : (kind === "node" || kind === "pod") && name ? "one" : VIEWS.includes(kind) && kind !== "one" ? kind : "status";
  const moved = wanted !== view || wanted === "one";
  view = wanted;
  const before = pool;
  pool = kind === "pool" ? name : "";
  for (const each of VIEWS) $("view-" + each).hidden = each !== view;
  for (const each of document.querySelectorAll("#tabs a")) { if (each.id === "tab-" + view) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current"); }
  if (pool) filterBy("pool=" + pool); else if (before) filterBy("");
  if (view === "one") { showOne(kind, name); $("one-title").focus(); } else LOADS[view]?.();
  if (moved) scrollTo(0, 0);
  look();
}

/* What was seen last stays, and it is said that it is old. */
function trouble(error) {
  const live = $("live");
  live.className = "needs";
  live.replaceChildren(error.message, ...(known.status ? ["; as of ", when(known.status.now)] : []));
  if (!known.status) put("totals", failed(error));
}
function told(found) {
  clearTimeout(silent); silent = null;
  showStatus(found);
  const live = $("live");
  live.className = "soft";
  live.replaceChildren("as of ", when(found.asOf ?? found.now));
  look();
}
const stream = new EventSource("stream");
stream.addEventListener("status", event => told(JSON.parse(event.data)));
stream.addEventListener("trouble", event => trouble(new Error(JSON.parse(event.data).message)));
let polling = null, silent = null;
async function poll() { try { told(await ask("status")); } catch (error) { trouble(error); } }
stream.addEventListener("error", () => {
  /* A proxy that lets no stream through: ask again and again instead. */
  if (stream.readyState === EventSource.CLOSED) { if (polling === null) { poll(); polling = setInterval(poll, 5000); } }
  else silent ??= setTimeout(() => trouble(new Error("no worker answers")), PATIENCE);
});

document.addEventListener("keydown", event => {
  if (event.key !== "/" || /INPUT|SELECT/.test(event.target.tagName)) return;
  event.preventDefault();
  if (view !== "nodes") { history.pushState(null, "", "#/nodes"); route(); }
  $("filter").focus();
});
const chosen = localStorage.getItem("theme");
if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
$("theme").addEventListener("click", () => {
  const { dataset } = document.documentElement;
  const dark = dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", dataset.theme);
});
let resized = 0;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { if (view === "status") { showNodesOnMap(); showTrend(); } }, 150); });
addEventListener("hashchange", route);
offerClusters();
route();
