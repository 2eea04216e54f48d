/* All clusters of the Temporal namespace, those in trouble first. No worker answers it: `dovetail top --web` asks Temporal itself. */
import { $, make, put, soft, failed, when, moment, now, span, plural, count, money, table, card, typed } from "./dom.js";
import { ask } from "./ask.js";
import { clusters as known } from "./here.js";

const REST = 60000, MOST = 3;
const TONES = { silent: "needs", "needs a person": "needs", unknown: "waits" };
const HEADS = [{ name: "cluster", text: true }, { name: "region" }, { name: "version" }, { name: "Kubernetes" }, { name: "workers", right: true }, { name: "age", right: true }, { name: "nodes", right: true },
  { name: "$/month", right: true }, { name: "pending", right: true }, { name: "moves", text: true }, { name: "state" }, { name: "as of", right: true }];
let askedAt = -REST, asking = false;

export const offerClusters = () => { $("tab-clusters").hidden = !known; };
/* A fleet changes slowly, and a report is minutes old. */
export async function showClusters() {
  if (!known) { put("clusters", soft("The clusters of the namespace are told by `dovetail top --web`, and by:"), typed("dovetail fleet")); return; }
  if (asking || performance.now() < askedAt + REST) return;
  asking = true;
  if (!$("clusters").firstChild) put("clusters", soft("asking …"));
  try { put("clusters", shown(await ask("fleet"))); } catch (error) { put("clusters", failed(error)); } finally { asking = false; askedAt = performance.now(); }
}
function shown({ namespace, clusters }) {
  if (!clusters.length) return soft(`no cluster runs in the namespace ${namespace}`);
  const reports = clusters.map(each => each.report).filter(Boolean), sum = (of, all = reports) => all.reduce((total, each) => total + (of(each) || 0), 0);
  const inState = state => clusters.filter(each => each.state === state).length, needing = inState("needs a person"), silent = inState("silent"), boxes = clusters.flatMap(needs).filter(Boolean);
  return [make("div", { class: "cards" }, card("clusters", count(clusters.length), `namespace ${namespace}`), card("nodes", count(sum(each => each.nodes))), card("price", money(sum(each => each.month, clusters), 0), "a month"),
    card("pods that wait", count(sum(each => each.pendingPods))), card("silent", count(silent)), card("need a person", count(needing))),
    boxes.length ? [make("h2", {}, "Needs a person"), boxes] : null, make("h2", {}, "Clusters"), make("div", { class: "wide nodes" }, table("Clusters", HEADS, clusters.map(row)))];
}
/* What it needs: the reason for the view. */
function needs({ name, note, report }) {
  const box = (...inside) => make("div", { class: "need" }, make("span", {}, make("b", {}, name), " ", inside));
  if (!report) return note ? [box(note)] : [];
  const left = report.needing - Math.min(MOST, report.needs.length);
  return [note ? box(note) : null, ...report.troubles.map(text => box(text)),
    ...report.needs.slice(0, MOST).map(each => make("div", { class: "need" }, make("span", {}, make("b", {}, name), ` ${each.about} ${each.what}`), typed(each.command))), left > 0 ? box(`and ${count(left)} more`) : null];
}
function row({ name, state, silentSince, month, report }) {
  const tone = TONES[state] ?? "goes", paused = state === "fine" && report?.pauses.length;
  const said = silentSince ? ["silent for ", span(now() - moment(silentSince))] : paused ? make("span", { title: report.pauses.join("\n") }, "paused") : state;
  if (!report) return [name, "", "", "", "", "", "", "", "", "", { said, tone }, ""];
  const youngest = report.workers.map(each => each.since).filter(Boolean).sort().at(-1);
  return [name, report.region, report.version, report.kubernetes, count(report.workers.length), when(youngest, "age"), count(report.nodes), money(month ?? 0, 0), report.pendingPods ? count(report.pendingPods) : "–",
    moves(report), { said, tone: paused ? "waits" : tone }, when(report.at)];
}
const moves = report => [[report.launches, "come"], [report.terminations, "leave"], [report.disruptions, "to leave"], [report.drifted, "drifted"]].filter(([number]) => number).map(([number, word]) => `${count(number)} ${word}`).join(", ") || "–";
