/* What disruption has saved, and what happened. */
import { $, make, put, soft, failed, room, money, count, moment, when, span, toNode, toPool, toWorkflow, some, table, card } from "./dom.js";
import { ask } from "./ask.js";
import { bars, line } from "./plots.js";
import words from "./words.js";

const part = (title, id, ...inside) => make("div", { id }, make("h2", {}, title), inside);
const known = value => value === null || value === undefined ? "–" : money(value);
const signed = value => !value ? "" : (value > 0 ? "−" : "+") + Math.abs(value).toFixed(4);
const outcome = each => ({ said: [each.by ? `${each.outcome} by ${each.by}` : each.outcome, each.message ? make("span", { class: "soft" }, ` ${each.message}`) : ""], tone: "text" + (/failed|refused|timed/.test(each.outcome) ? " waits" : "") });

/* One bar would be as long as it is wide, and say nothing. */
const compared = (label, rows) => rows.length > 1 ? bars(label, rows, money) : null;

/* Whose pods were moved: the largest as bars, each in the table. */
const MOST_BARS = 10, MOST_ROWS = 200, { columns: COLUMNS, labels: LABELS, unknown: UNKNOWN } = words.namespaces;
function namespaces(found) {
  if (!found?.length) return null;
  const named = each => LABELS[each.whose] ?? each.namespace;
  const rows = found.toSorted((a, b) => Math.abs(b.saved) - Math.abs(a.saved));
  return part("Saved by namespace", "by-namespace",
    compared("Saved by namespace", rows.slice(0, MOST_BARS).map(each => ({ name: named(each), value: each.saved }))),
    make("div", { class: "wide" }, table("Savings by namespace", COLUMNS, rows.slice(0, MOST_ROWS).map(each => [named(each), each.predicted.toFixed(4), each.saved.toFixed(2)]))),
    rows.length > MOST_ROWS ? soft(`${count(rows.length - MOST_ROWS)} more: dovetail savings --by namespace`) : null,
    found.some(each => each.whose === "unknown") ? soft(UNKNOWN) : null);
}

export async function showSavings() {
  const since = $("since").value;
  put("saved", soft("asking …"));
  try {
    const [found, log] = await Promise.all([ask(`savings?since=${since}`), ask(`log?since=${since}`)]);
    const { total } = found, width = room("saved") - 32;
    let sum = 0;
    const done = log.entries.filter(each => each.kind === "disruption" && each.outcome === "done" && each.saved && each.ended).sort((a, b) => moment(a.ended) - moment(b.ended));
    const taken = done.map(each => ({ at: moment(each.ended), value: sum += each.saved })), until = moment(found.until) || 0;
    if (taken.length && until > taken.at(-1).at) taken.push({ at: until, value: sum });
    put("saved",
      make("div", { class: "cards", id: "saved-cards" }, card("saved", (found.partial ? "at least " : "") + money(total.saved), "against a time without moves"), card("bill", known(total.bill), "of all nodes"), card("predicted", money(total.predicted, 4) + "/h"), card("moves", count(total.moves), `${count(total.undone)} undone, ${count(total.back)} came back`), card("pods moved", count(total.pods))),
      (found.notes ?? []).map(soft),
      part("Saved by NodePool", "by-pool", compared("Saved by NodePool", found.pools.map(each => ({ name: each.pool, value: each.saved }))),
        make("div", { class: "wide" }, table("Savings", [{ name: "pool" }, { name: "moves", right: true }, { name: "undone", right: true }, { name: "came back", right: true }, { name: "predicted $/h", right: true }, { name: "saved $", right: true }, { name: "bill $", right: true }, { name: "pods moved", right: true }],
          found.pools.map(each => [toPool(each.pool), each.moves, each.undone, each.back, each.predicted.toFixed(4), each.saved.toFixed(2), each.bill === null || each.bill === undefined ? "–" : each.bill.toFixed(2), each.pods])))),
      namespaces(found.namespaces),
      part("Over time", "over-time", line("taken off the price by moves", taken, value => money(value) + "/h", width, true)),
      part("What happened", "log", make("div", { class: "wide" }, table("What happened", [{ name: "began" }, { name: "took", right: true }, { name: "what" }, { name: "reason", text: true }, { name: "pool" }, { name: "nodes", text: true }, { name: "type" }, { name: "pods", right: true }, { name: "$/h", right: true }, { name: "outcome", text: true }],
        log.entries.slice(-200).reverse().map(each => [when(each.began), each.ended ? span(moment(each.ended) - moment(each.began)) : "", toWorkflow(each.workflow, each.kind), each.reason, some(each.pools?.length ? [...new Set(each.pools)] : [each.pool], toPool, 3), some(each.nodes.length ? each.nodes : each.claims, name => toNode(name), 3), each.instanceType, each.pods || "", signed(each.saved), outcome(each)])))));
  } catch (error) { put("saved", failed(error)); }
}
$("since").addEventListener("change", showSavings);
