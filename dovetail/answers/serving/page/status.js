/* The overview: what costs, what needs a person, where everything is, what moves. */
import { $, make, put, soft, failed, room, money, count, plural, share, percent, moment, now, span, when, clockIs, workflowsAre,
  toNode, toPool, toPod, typed, table, card, use, list } from "./dom.js";
import { ask } from "./ask.js";
import { line } from "./plots.js";
import { showMap } from "./map.js";
import { showRollouts, answers } from "./rollouts.js";

export const known = { status: null, nodes: null, needing: new Set() };
const SAYS_HOW_LONG = /\b(for|since) \d|\d[smhd] ago\b/;
const seen = [];  // since this page was opened; the worker has the day before

const about = each => each.about.startsWith("NodePool ") ? [make("span", { class: "soft" }, "NodePool "), toPool(each.about.slice(9))]
  : each.about.startsWith("NodeRollout ") ? each.about : /^dovetail explain pod /.test(each.command) || each.about.includes("/") ? toPod(each.about) : toNode(each.about);
const shownPart = (id, is) => { $(id + "-part").hidden = !is; };

/* One line is read at a glance; what goes on and what to read is behind it. */
function trouble(each) {
  const more = [each.goesOn && make("p", {}, "goes on: " + each.goesOn), each.page && make("p", {}, "read: ", make("code", {}, each.page))].filter(Boolean);
  const head = [make("b", {}, each.what), each.since ? ` for ${span(now() - moment(each.since))}` : "", each.standsStill ? `: ${each.standsStill}` : ""];
  return more.length ? make("details", { class: "trouble" }, make("summary", {}, head), more) : make("div", { class: "trouble" }, head);
}
export function troubles(lines) {
  const open = [...document.querySelectorAll("#troubles details")].map(each => each.open);
  const made = lines.map(trouble);
  made.forEach((each, i) => { if (open[i]) each.open = true; });
  const box = $("troubles"), text = made.map(each => each.textContent).join("\n");
  if (box.textContent !== text || box.children.length !== made.length) box.replaceChildren(...made);
}

/* The list of nodes may have come before, and is asked for again seldom: the map knows at once who needs a person. */
function needs(names) {
  const same = names.size === known.needing.size && [...names].every(each => known.needing.has(each));
  known.needing = names;
  if (!same && known.nodes && !$("view-status").hidden) showNodesOnMap();
}

export function showStatus(found) {
  known.status = found;
  needs(new Set(found.needsPerson.map(each => each.about)));
  clockIs(found.now); workflowsAre(found.workflows);
  const t = found.totals;
  seen.push({ at: moment(found.now), price: t.price, nodes: t.claims });
  if (seen.length > 200) seen.shift();
  $("cluster").textContent = found.cluster;
  document.title = `${found.needsPerson.length ? `(${found.needsPerson.length}) ` : ""}${found.cluster} · ${money(t.price)}/h · Dovetail`;
  troubles(found.troubles ?? []);
  put("pauses", found.pauses.map(text => make("p", { class: "waits" }, text)), (found.shortages ?? []).map(text => make("p", { class: "waits" }, text)));
  put("totals",
    card("price", money(t.price) + "/h", money(t.price * 730, 0) + " a month" + (t.unpriced ? `, ${t.unpriced} of unknown price` : "")),
    card("nodes", count(t.nodes), [percent(t.spot) + " spot", t.notOurs ? `${count(t.notOurs)} not ours` : ""].filter(Boolean).join(", ")),
    card("pods", count(t.pods), t.pendingPods ? make("a", { href: "#/pods", class: "waits" }, t.pendingPods + " pending") : "none waits"),
    card("cpu", percent(share(t.cpu)), `${count(Math.round(t.cpu.used))} of ${count(Math.round(t.cpu.room))} cores`),
    card("memory", percent(share(t.memory)), `${count(Math.round(t.memory.used / 2 ** 30))} of ${count(Math.round(t.memory.room / 2 ** 30))} GiB`),
    card("Scheduler", found.scheduler, found.workers === undefined || found.workers === null ? "" : plural(found.workers, "worker")));
  showEmpty(found);
  shownPart("needs", found.needsPerson.length);
  put("needs", found.needsPerson.map(each => make("div", { class: "need" },
    make("span", {}, make("b", {}, about(each)), " ", each.what, each.since && !SAYS_HOW_LONG.test(each.what) ? [" ", make("span", { class: "soft" }, "for ", when(each.since, "age"))] : ""), answers(each.command))));
  showRollouts(found.rollouts ?? []);
  shownPart("moves", found.underWay.length);
  put("moves", table("Under way", [{ name: "node" }, { name: "pool" }, { name: "why", text: true }, { name: "step" }, { name: "progress", text: true }, { name: "age", right: true }, { name: "stop it" }],
    found.underWay.slice(0, 200).map(each => [toNode(each.claim || each.name, each.name), toPool(each.pool), each.why + (each.savings ? ` −${money(each.savings)}/h` : ""),
      { said: each.step, tone: each.blockers.length ? "waits" : "goes" }, [each.due ? ["second look ", when(each.due), " "] : "", each.progress], when(each.since, "age"), typed(each.stop)])));
  shownPart("pools", found.pools.length);
  put("pools", table("NodePools", [{ name: "pool" }, { name: "nodes", right: true }, { name: "$/h", right: true }, { name: "cpu" }, { name: "memory" }, { name: "drifted", right: true }, { name: "may go now", text: true }],
    found.pools.map(each => [toPool(each.name), count(each.nodes), money(each.price), use(share(each.cpu)), use(share(each.memory)), each.drifted, mayGo(each)])));
  shownPart("recent", found.recent.length);
  put("recent", list(found.recent.toReversed().map(each => [when(each.at), " ", each.text])));
}
const mayGo = pool => pool.mayGo.flatMap((may, i) => [i ? "; " : "", ...(may.whyNot ? [`${may.reason} ${may.left || "none"}: `, ...quoted(may.whyNot)] : [`${may.reason} ${may.left} of ${may.allowed}`])]);
const quoted = text => text.split("`").map((part, i) => i % 2 ? typed(part) : part);  // what is to be typed

/* Nothing is there yet: what would be, and the two commands that make it so. Nothing is promised while pods wait or
   something is wrong. */
function showEmpty(found) {
  if (found.totals.claims) { put("empty"); return; }
  const pools = found.pools.length, waiting = found.totals.pendingPods, well = !waiting && !found.troubles?.length;
  const state = [pools, waiting, well].join("/");
  if ($("empty").firstChild?.state === state) return;
  const may = [`${plural(pools, "NodePool")} may make ${waiting ? "one" : "it"}: `, found.pools.slice(0, 8).flatMap((each, i) => [i ? ", " : "", toPool(each.name)]), "."];
  const waits = [make("a", { href: "#/pods" }, `${plural(waiting, "pod")} ${waiting === 1 ? "waits" : "wait"}`), ": see what becomes of each."];
  const box = make("div", { class: "empty" }, make("img", { src: "page/icon.svg", alt: "", width: 72, height: 72 }),
    make("div", {}, make("h2", {}, !pools ? "There is no NodePool yet" : waiting ? "There is no node yet" : "No node is needed now"),
      make("p", {}, pools ? [well ? "A node comes within seconds when a pod waits for one. " : "", may] : "A NodePool says which nodes may be made. Once there is one, a node can come when a pod waits for it."),
      waiting ? make("p", {}, waits) : null,
      pools && !well ? null : [make("p", { class: "soft" }, "To see one come and go:"),
        pools ? null : typed("kubectl apply -f nodepool.yaml"),
        typed("kubectl create deployment hello --image=registry.k8s.io/pause:3.10 --replicas=3"),
        typed("kubectl set resources deployment hello --requests=cpu=1"),
        typed("kubectl delete deployment hello")],
      make("p", { class: "soft" }, "What is well and what is not: ", typed("dovetail doctor"))));
  box.state = state;
  put("empty", box);
}

export function showNodesOnMap() {
  const { nodes } = known;
  shownPart("map", nodes?.nodes.length);
  if (nodes?.nodes.length) showMap(nodes, known.needing, room("map"));
}

export async function showTrend() {
  let past = [], partial = true;
  try { ({ points: past, partial } = await ask("trend")); } catch { /* of an older worker: what was seen here is shown */ }
  const before = past.map(each => ({ ...each, at: moment(each.at) })), last = before.at(-1)?.at ?? 0;
  const points = [...before, ...seen.filter(each => each.at > last)];
  shownPart("trend", before.length > 1 || seen.length > 30);
  const all = room("trend"), width = (all > 728 ? (all - 12) / 2 : all) - 32;  // less the frame of each
  put("trend", line("price an hour", points.map(each => ({ at: each.at, value: each.price })), value => money(value) + "/h", width),
    line("nodes", points.map(each => ({ at: each.at, value: each.nodes })), value => plural(value, "node"), width),
    partial && points.length > 1 ? soft("The record does not reach back a whole day.") : null);
}
