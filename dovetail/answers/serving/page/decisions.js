/* Decisions that were kept, made again; and beside Karpenter what both did. */
import { make, put, soft, failed, money, count, when, plural, toNode, toPool, table, facts, part, list, card } from "./dom.js";
import { ask } from "./ask.js";

const made = nodes => nodes.map(each => `${each.type} of ${each.pool}${each.price === null ? "" : ` (${money(each.price, 4)}/h)`}`).join(", ") || "nothing";
const WAYS = { both: "both", karpenter: "Karpenter alone", dovetail: "Dovetail alone" };
function beside(found) {
  const t = found.totals;
  return [make("h2", {}, "Beside Karpenter"), make("p", { class: "soft" }, "since ", when(found.since), `, ${plural(found.looks, "look")}`),
    make("div", { class: "cards" }, card("launches alike", count(t.launchesAlike), `${count(t.launchesUnlike)} unlike`), card("departures alike", count(t.departuresAlike), `${count(t.departuresUnlike)} unlike`), card("would have saved", money(t.saved), `${money(t.savingNow)}/h now`)),
    found.notes.map(soft), !found.launches.length && !found.departures.length ? make("p", { class: "calm" }, "Nothing has been compared yet.") : null,
    found.launches.length ? part("Launches", make("div", { class: "wide" }, table("Launches", [{ name: "at" }, { name: "pods", right: true }, { name: "Dovetail", text: true }, { name: "Karpenter", text: true }, { name: "differs", text: true }], found.launches.slice(-100).reverse().map(each => [when(each.at), each.pods, made(each.dovetail), made(each.karpenter), each.differs])))) : null,
    found.departures.length ? part("Departures", make("div", { class: "wide" }, table("Departures", [{ name: "node" }, { name: "pool" }, { name: "who" }, { name: "Dovetail", text: true }, { name: "Karpenter", text: true }, { name: "differs", text: true }], found.departures.slice(-100).reverse().map(each => [toNode(each.claim, each.node), toPool(each.pool), WAYS[each.way], each.dovetail, each.karpenter, each.differs])))) : null];
}
async function again(id) {
  put("replayed", soft("asking …"));
  try {
    const found = await ask(`replay/${encodeURIComponent(id)}`);
    put("replayed", make("h2", {}, `Decision ${found.id}, made again`), make("p", { class: found.same ? "verdict goes" : "verdict waits" }, found.same ? "The same comes out." : "Something else comes out now."),
      facts([["at", when(found.at)], ["about", found.decision], ["by", [found.by, found.version].filter(Boolean).join(", ")], ["decided", found.decided.length ? list(found.decided) : "nothing"], ["differs", found.differences.length ? list(found.differences) : ""]]));
  } catch (error) { put("replayed", failed(error)); }
}
export async function showDecisions() {
  put("flights", soft("asking …"));
  /* A worker that acts has no shadow, and says so: then there is nothing to show of it. */
  try { put("shadow", ...beside(await ask("shadow"))); } catch { put("shadow"); }
  try {
    const found = await ask("replay");
    put("flights", table("Decisions that are kept", [{ name: "when" }, { name: "about" }, { name: "kept", right: true }, { name: "made again" }],
      found.flights.slice(-100).reverse().map(each => [when(each.at), each.kind, `${Math.ceil(each.size / 1024)} KiB`, make("button", { "data-flight": each.id, "aria-label": `Make ${each.id} again`, on: { click: () => again(each.id) } }, "Make again")]), "none is kept: DOVETAIL_FLIGHTS says where"));
  } catch (error) { put("flights", failed(error)); }
}
