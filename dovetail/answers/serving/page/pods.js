/* The pods that wait, each with what becomes of it. */
import { make, put, soft, failed, when, plural, count, toPod, toPool, toNode, typed, table } from "./dom.js";
import { ask } from "./ask.js";

const WORDS = { new_node: "a new node", existing_node: "a node that is there", spoken_for: "on its way", place_kept: "on its way", refused: "no place", not_reached: "not reached",
  waits_for_reservation: "waits for a reservation", ignored: "left alone", with_scheduler: "with the kube-scheduler" };
const TONES = { refused: "needs", not_reached: "waits", waits_for_reservation: "waits", ignored: "waits", new_node: "goes", existing_node: "goes", spoken_for: "goes", place_kept: "goes" };
export async function showPods() {
  put("pods", soft("asking …"));
  try {
    const { pods } = await ask("pods");
    if (!pods.length) { put("pods", make("div", { class: "empty" }, make("img", { src: "page/icon.svg", alt: "", width: 72, height: 72 }), make("div", {}, make("h2", {}, "No pod waits for a node"), soft("A pod stands here from the moment that the kube-scheduler finds no place for it. Of any other pod:"), typed("dovetail explain pod NAMESPACE/NAME")))); return; }
    const told = pods.filter(each => each.says), counts = {};
    for (const each of told) counts[each.state] = (counts[each.state] || 0) + 1;
    put("pods", make("p", {}, make("b", {}, plural(pods.length, "pod") + (pods.length === 1 ? " waits" : " wait")), Object.entries(counts).flatMap(([state, number]) => [" · ", make("span", { class: TONES[state] || "soft" }, `${count(number)}: ${WORDS[state] ?? state}`)])),
      table("Pods that wait", [{ name: "pod" }, { name: "waits", right: true }, { name: "becomes" }, { name: "because", text: true }, { name: "pool" }, { name: "node" }],
        (told.length ? told : pods).slice(0, 500).map(each => [toPod(each.name), when(each.since, "age"), { said: WORDS[each.state] ?? each.state ?? "", tone: TONES[each.state] }, each.says ?? "", toPool(each.pool), toNode(each.node || each.claim)])),
      pods.length > 500 ? soft(`and ${plural(pods.length - 500, "younger pod")}`) : null);
  } catch (error) { put("pods", failed(error)); }
}
