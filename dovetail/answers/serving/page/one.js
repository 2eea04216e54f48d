/* One node or one pod: the verdict first, then why, then its story. */
import { $, make, put, soft, failed, money, plural, count, moment, now, span, when, toNode, toPool, toPod, toWorkflow, some, typed, table, facts, part, list, notes } from "./dom.js";
import { ask, below } from "./ask.js";
import { timeline } from "./plots.js";
import words from "./words.js";

const GIB = 2 ** 30;
export const amounts = pairs => pairs.filter(([name]) => name !== "pods").map(([name, amount]) => name === "cpu" ? `cpu ${Number((amount / 1e9).toFixed(2))}` : /memory|storage|hugepages/.test(name) ? `${name} ${Number((amount / GIB).toFixed(2))} GiB` : `${name} ${count(amount)}`).join(", ");
const held = (title, pods) => pods.length ? part(title, list(pods.slice(0, 50).map(each => [toPod(each.pod), `: ${[each.by, each.detail].filter(Boolean).join(", ")}`]))) : null;

function node(found) {
  const verdict = method => found.goesFor.includes(method.asked) ? make("b", { class: "goes" }, "yes, now") : method.why ? ["no: ", method.message] : "would, but not now: what holds it stands on this page";
  const { move } = found, name = found.claim || found.node;
  return [make("p", { class: "verdict" }, found.says), notes(found),
    facts([["NodeClaim", found.claim], ["NodePool", toPool(found.pool)], ["instance", found.instance], ["state", found.state], ["workflow", toWorkflow(found.workflow)], ["roll-out", found.rollout ?? ""],
      ["expires", found.expiresAt ? when(found.expiresAt) : ""], ["quiet since", found.quietSince ? [when(found.quietSince), found.consolidateAfter !== null ? `, consolidation after ${span(found.consolidateAfter)}` : ""] : ""],
      ["commands", [found.claim ? typed(`dovetail replace ${name}`) : "", typed(`dovetail explain node ${name}`), found.node ? typed(`kubectl describe node ${found.node}`) : typed(`kubectl describe nodeclaim ${name}`)]]]),
    found.checks.length ? part("What holds it, whatever the reason to take it", list(found.checks.map(each => [each.message, words.help[each.why] ? make("span", { class: "soft" }, " → " + words.help[each.why]) : ""]))) : null,
    held("Pods that must not be evicted now", found.held), held("Pods whose preferences can prevent consolidation", found.choosy),
    found.methods.length ? part("Each way to take it", facts(found.methods.map(each => [words.methods[each.asked] ?? each.asked, verdict(each)]))) : null,
    found.budgets.length ? part("Budgets", list(found.budgets.map(each => [`${each.reason}: `, each.allowed === words.unbounded ? "no limit" : `${each.left} now, ${each.allowed} of ${plural(each.nodes, "node")} allowed, ${each.consuming} in use`, each.binding ? `; binding: ${each.binding}` : "", each.until ? ["; closes ", when(each.until)] : "", each.errors.map(text => make("span", { class: "needs" }, " " + text))]))) : null,
    found.step ? part("What the policy cost wants with it", make("p", {}, found.step)) : null,
    move ? part("If it were gone", make("p", {}, move.says), facts([["pods go to", some(move.moved, ([name, pods]) => [toNode(name), ` (${pods})`])], ["without a place", some(move.unplaced, ([pod, why]) => [toPod(pod), `: ${why}`], 3)], ["new nodes", move.replacements.join("; ")],
      ["costs", move.priceNow === null ? "" : `${money(move.priceNow, 4)}/h` + (move.priceThen === null ? "" : `, then ${money(move.priceThen, 4)}/h`)], ["scores", move.scores.length ? list(move.scores) : ""]])) : null,
    part(plural(found.pods, "pod"), make("div", { class: "wide" }, table("Pods", [{ name: "pod" }, { name: "cpu", right: true }, { name: "memory", right: true }, { name: "age", right: true }, { name: "if the node goes" }],
      (found.podsThere ?? []).map(each => [toPod(each.pod), Number(each.cpu.toFixed(3)), `${(each.memory / GIB).toFixed(2)} GiB`, when(each.since, "age"), each.moves ? "needs another place" : "goes with it"]))))];
}
const refusals = all => all.map(each => make("article", { class: "box" }, make("h4", {}, each.pool ? toPool(each.pool) : "any NodePool"), make("p", {}, words.pools[each.reason] ?? each.reason),
  facts([["conflict", each.conflict], ["would help", each.daemonSets.length ? each.remedy : ""]])));
function pod(found) {
  return [make("p", { class: "verdict" }, found.says), notes(found),
    facts([["asks for", found.asksFor.length ? list(found.asksFor) : ""], ["node", toNode(found.node)], ["NodeClaim", toNode(found.claim)], ["NodePool", toPool(found.pool)],
      ["may be", found.types.length ? `${found.types.join(", ")}${found.typesInAll > found.types.length ? `, of ${found.typesInAll}, the cheapest first` : ""}` : ""], ["together with", found.togetherWith ? plural(found.togetherWith, "other pod") : ""],
      ["commands", [typed(`dovetail explain pod ${found.pod}`), typed(`kubectl -n ${found.pod.split("/")[0]} describe pod ${found.pod.split("/")[1]}`)]]]),
    found.state === "refused" ? part("What would have helped", found.helps.length ? list(found.helps.map(each => [each.change, make("span", { class: "goes" }, " → " + each.then)])) : soft("no single change: more than one thing stands in the way")) : null,
    found.pools.length ? part("Why no new node, by NodePool in the order tried", make("div", { class: "boxes" }, refusals(found.pools))) : null,
    found.poolsAlone.length ? part("The same if no other pod were waiting", make("div", { class: "boxes" }, refusals(found.poolsAlone))) : null,
    found.poolsLeftOut.length ? part("NodePools that are not asked", list(found.poolsLeftOut.map(([name, why]) => [toPool(name), ": " + why]))) : null,
    found.pools.length ? part("Nodes that are there, by the first thing that rules them out", facts(Object.entries(found.existing).map(([reason, number]) => [count(number), words.places[reason] ?? reason.replaceAll("_", " ")]))) : null];
}
const steps = story => [...story.lines.filter(each => each.seconds !== null && each.seconds !== undefined).map(each => ({ name: each.text, from: moment(each.at) - each.seconds, to: moment(each.at) })),
  ...story.now.map(each => ({ name: each.step + (each.progress ? `: ${each.progress}` : ""), from: moment(each.since), to: now(), runs: true }))];
function history(found) {
  return [part("What became of it", found.stories.length ? null : soft("nothing is known of it"), found.notes.map(soft)), ...found.stories.map(story => make("article", { class: "story" },
    make("h4", {}, story.type, make("span", { class: story.status === "running" ? "goes" : "soft" }, ` ${story.status}`), " ", when(story.started)), make("p", { class: "soft" }, toWorkflow(story.workflow)),
    story.stuck ? make("p", { class: "needs" }, story.stuck) : null, story.now.filter(each => each.lastFailure).map(each => make("p", { class: "needs" }, `${each.step}, try ${each.attempt}: ${each.lastFailure}`)),
    timeline(steps(story)), story.lines.length ? make("details", {}, make("summary", {}, plural(story.lines.length, "event")), make("ol", { class: "events" }, story.lines.map(each => make("li", {}, when(each.at), " ", each.text)))) : null))];
}

let asked = "";
/* `kind`: node or pod; `at`: now where it is empty, else a time of which a decision was kept. */
export async function showOne(kind, name, at = "") {
  const mine = asked = `${kind}/${name}/${at}`;
  const field = make("input", { id: "at", size: 6, placeholder: "now", autocomplete: "off", value: at, title: "a time ago (3h), or a moment; needs kept decisions" });
  field.addEventListener("keydown", event => { if (event.key === "Enter") showOne(kind, name, field.value.trim()); });
  $("one-title").replaceChildren(make("span", { class: "soft" }, kind === "pod" ? "Pod " : "Node "), name);
  put("one", soft("asking …")); put("one-more");
  const tools = make("div", { class: "tools" }, make("label", {}, "As it was ", field));
  const explained = ask(`explain/${kind}/${below(name)}${at ? "?at=" + encodeURIComponent(at) : ""}`), story = ask(`history/${below(name)}`);
  story.catch(() => null);
  try { const found = await explained; if (asked === mine) { if (found.node && kind === "node") $("one-title").lastChild.textContent = found.node; put("one", tools, ...(kind === "pod" ? pod : node)(found).flat()); } }
  catch (error) { if (asked === mine) put("one", tools, failed(error)); }
  if (asked !== mine) return;
  put("one-more", soft("asking for its history …"));
  try { const found = await story; if (asked === mine) put("one-more", ...history(found)); }
  catch (error) { if (asked === mine) put("one-more", part("What became of it", failed(error))); }
}
