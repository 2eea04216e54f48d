/* What would be done now, and what is to come. */
import { $, make, put, soft, failed, money, count, plural, when, span, toNode, toPool, toPod, some, table, facts, part, list, notes } from "./dom.js";
import { ask } from "./ask.js";
import { amounts } from "./one.js";
import words from "./words.js";

const refusals = (title, all) => all.length ? part(title, make("div", { class: "wide" }, table(title, [{ name: "why", text: true }, { name: "how many", right: true }, { name: "for example", text: true }], all.map(each => [[words.pools[each.reason] ?? each.reason, words.help[each.reason] ? make("div", { class: "soft" }, words.help[each.reason]) : ""], count(each.count), list(each.examples)])))) : null;
const box = (head, ...inside) => make("article", { class: "box" }, make("h4", {}, head), inside);
function plan(found) {
  const nothing = !found.newNodes.length && !found.disruptions.length && !found.ontoExisting.length;
  const late = found.refusedPods.filter(each => each.reason === "not_reached"), refused = found.refusedPods.filter(each => each.reason !== "not_reached");
  return [notes(found), found.errors.map(text => make("p", { class: "needs" }, text)), found.heldBack.length ? part("Held back by a pause, a policy or a roll-out", list(found.heldBack)) : null,
    nothing ? make("p", { class: "calm" }, late.length || found.cut ? "Nothing was found to do before time was up." : "Nothing would be done now.") : null,
    found.newNodes.length ? part("Nodes that would come", make("div", { class: "boxes" }, found.newNodes.map(each => box([`${each.cheapest}, `, toPool(each.pool)], facts([["price", `from ${money(each.price, 4)}/h`], ["of", plural(each.types, "type")], ["market", each.capacityTypes.join(", ")], ["zones", each.zones.join(", ")], ["holds", amounts(each.requests)], ["for", some(each.pods, toPod, 5)]])))), found.moreNewNodes ? soft("and more in the next round") : null) : null,
    found.ontoExisting.length ? part("Pods that go to nodes which are there", list(found.ontoExisting.slice(0, 30).map(([node, pods]) => [toNode(node), ` ${plural(pods, "pod")}`]))) : null,
    found.disruptions.length ? part("Nodes that would go", make("div", { class: "boxes" }, found.disruptions.map(each => box([each.reason, each.savings ? make("span", { class: "goes" }, ` −${money(each.savings, 4)}/h`) : null], make("p", {}, each.summary), facts([["nodes", some(each.nodes, name => toNode(name))], ["become", each.becomes.join("; ")], ["pods move", each.pods || ""], ["second look", each.lookAgainAfter ? `after ${span(each.lookAgainAfter)}` : ""]]))))) : null,
    found.secondLooks.length ? part("Waits for its second look", list(found.secondLooks.map(each => [when(each.due), `: ${each.reason}, `, some(each.nodes, name => toNode(name))]))) : null,
    refusals("Pods without a place", refused), refusals("Pods that were not reached", late), refusals("Pods that are left alone", found.ignoredPods),
    found.poolsLeftOut.length ? part("NodePools that are not asked", list(found.poolsLeftOut.map(([pool, why]) => [toPool(pool), ": " + why]))) : null,
    refusals("Why nodes stay", found.refusedNodes),
    found.budgets.length ? part("Budgets", make("div", { class: "wide" }, table("Budgets", [{ name: "pool" }, { name: "reason" }, { name: "may go now", right: true }, { name: "allowed", right: true }, { name: "in use", right: true }], found.budgets.map(each => [toPool(each.pool), each.reason, each.allowed === words.unbounded ? "any" : each.left, each.allowed === words.unbounded ? "no limit" : each.allowed, each.inUse])))) : null,
    found.left ? soft(found.left.says) : null];
}
const forecast = found => [notes(found),
  found.coming.length ? make("div", { class: "wide" }, table("What is to come", [{ name: "when" }, { name: "what" }, { name: "pool" }, { name: "how", text: true }, { name: "nodes", text: true }], found.coming.map(each => [when(each.at), each.what, toPool(each.pool), each.text, some(each.nodes, name => toNode(name), 4)]))) : make("p", { class: "calm" }, found.cut ? "Nothing was found to be due before time was up." : "Nothing is due in that time."),
  found.staying.length ? part("What stays", make("div", { class: "wide" }, table("What stays", [{ name: "node" }, { name: "pool" }, { name: "due for" }, { name: "why it stays", text: true }], found.staying.slice(0, 200).map(each => [toNode(each.node), toPool(each.pool), each.reason, each.message])))) : null];

export async function showPlan() {
  const path = $("ahead").value;
  put("plan", soft("asking …"));
  try { const found = await ask(path); if ($("ahead").value === path) put("plan", ...(path === "plan" ? plan : forecast)(found).flat()); }
  catch (error) { put("plan", failed(error)); }
}
$("ask-plan").addEventListener("click", showPlan);
$("ahead").addEventListener("change", showPlan);
