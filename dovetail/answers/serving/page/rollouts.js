/* Roll-outs: a bar of the nodes with a mark at each step, what its gates say, what it waits for, and what to type. */
import { make, put, plural, span, when, toPool, typed, $ } from "./dom.js";

const MARKS = { done: "✓", now: "▸", "to come": "·" }, TONES = { Passing: "goes", Unknown: "waits", Failing: "needs" };
const part = (number, total) => total ? `${Math.min(100, 100 * number / total)}%` : "0%";

function bar({ name, total, target, leaving, steps }) {
  const words = `${target} of ${plural(total, "node")} at the target${leaving ? `, ${leaving} leaving` : ""}`;
  return [make("div", { class: "track steps", role: "img", "aria-label": `${name}: ${words}` },
    make("span", { class: "bar runs", css: { width: part(target + leaving, total) } }), make("span", { class: "bar", css: { width: part(target, total) } }),
    steps.filter(each => each.nodes < total).map(each => make("i", { class: "tick", css: { left: part(each.nodes, total) }, title: `step ${each.name}: ${plural(each.nodes, "node")}` }))),
  make("p", {}, words)];
}
const step = each => make("li", { class: each.place === "now" ? "now" : "soft", "aria-current": each.place === "now" ? "step" : null },
  `${MARKS[each.place] ?? ""} ${each.name}: ${plural(each.nodes, "node")}`, each.soak ? `, soaks ${span(each.soak)}` : "", each.asks ? ", then asks" : "");
const gate = each => make("li", {}, `gate ${each.name}: `, make("span", { class: TONES[each.result] }, each.result), each.message ? `, ${each.message}` : "");

const rollout = found => make("article", { class: found.needsPerson ? "box rollout asks" : "box rollout", "aria-label": `Roll-out ${found.name}` },
  make("h3", {}, found.name, found.pool ? [make("span", { class: "soft" }, " NodePool "), toPool(found.pool)] : "", " ", make("span", { class: found.needsPerson ? "needs" : found.isOver ? "soft" : "goes" }, found.state),
    found.since ? [" ", make("span", { class: "soft" }, "for ", when(found.since, "age"))] : ""),
  bar(found), make("ol", { class: "steps-list" }, found.steps.map(step)), make("ul", {}, found.gates.map(gate)),
  found.waitsFor ? make("p", { class: found.needsPerson ? "needs" : "waits" }, `waits for ${found.waitsFor}`, found.until ? make("span", { class: "soft" }, " · ends ", when(found.until)) : "") : null,
  found.commands.map(typed));

/* Of an older worker there are none. */
export function showRollouts(found) {
  $("rollouts-part").hidden = !found.length;
  put("rollouts", found.map(rollout));
}
/* A drain that asks has another answer beside the one that is named: each is a command of its own. */
export function answers(command) {
  const found = /^(dovetail decide \S+) wait \S+$/.exec(command);
  return found ? make("span", { class: "answers" }, typed(command), typed(`${found[1]} force`)) : typed(command);
}
