"""Bound pods start, run, end and, once deleted, stop within their grace.

What kubelets do, for every Node that lives. How long a pod takes to stop, whether it ever becomes ready and whether it
ends by itself can be said by annotations on the pod. The trap avoided: a deleted pod that lingers for its whole grace;
most processes stop at once when asked, and only a stubborn one uses it up.
"""

from typing import Any

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.objects import Body
from dovetail.adapters.simulator.play.machines import KUBELET, lives
from dovetail.adapters.simulator.play.moment import Turn, condition_of, is_deleting, is_over, is_true
from dovetail.model import names
from dovetail.model.time import format_time, parse_time

STOP_SECONDS = "embedded.dovetail.sh/stop-seconds"  # how long the containers take to stop when asked
RUN_SECONDS = "embedded.dovetail.sh/run-seconds"  # the pod succeeds after that time
NEVER_READY = "embedded.dovetail.sh/never-ready"


def move_pods(turn: Turn) -> None:
    """Bring every bound pod to where it should be now."""
    working = {n["metadata"]["name"]: is_true(n, names.READY) for n in turn.mirror.every("Node") if lives(turn, n)}
    for pod in turn.mirror.every("Pod"):
        node = pod.get("spec", {}).get("nodeName")
        if node not in working:
            continue
        if is_deleting(pod):
            _stop(turn, pod)
        elif working[node] and not is_over(pod):
            _advance(turn, pod)


def _stop(turn: Turn, pod: Body) -> None:
    metadata = pod["metadata"]
    last = parse_time(metadata["deletionTimestamp"])
    asked = last - metadata.get("deletionGracePeriodSeconds", 0)
    needed = float(_annotation(pod, STOP_SECONDS) or turn.settings.delay("pod_stop"))
    if turn.reached(min(asked + needed, last)):
        turn.cluster(KUBELET).delete("Pod", objects.key_of(pod), metadata["uid"], 0)


def _advance(turn: Turn, pod: Body) -> None:
    status = pod.get("status") or {}
    if status.get("phase") == "Pending":
        bound = condition_of(pod, "PodScheduled") or {}
        since = parse_time(bound.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"])
        if turn.reached(since + turn.settings.delay("pod_start")):
            _set_status(turn, pod, _running(turn, pod))
        return
    seconds = _annotation(pod, RUN_SECONDS)
    if seconds and turn.reached(parse_time(status["startTime"]) + float(seconds)):
        _set_status(turn, pod, {"phase": "Succeeded", "conditions": _conditions(turn, pod, ready=False)})


def _running(turn: Turn, pod: Body) -> Body:
    return {
        "phase": "Running",
        "startTime": format_time(turn.now),
        "conditions": _conditions(turn, pod, ready=not _annotation(pod, NEVER_READY)),
    }


def _set_status(turn: Turn, pod: Body, status: Body) -> None:
    turn.cluster(KUBELET).patch("Pod", objects.key_of(pod), {"status": status}, "status")


def _conditions(turn: Turn, pod: Body, *, ready: bool) -> list[dict[str, Any]]:
    word = "True" if ready else "False"
    states = {"Initialized": "True", "ContainersReady": word, "Ready": word}
    kept = [c for c in (pod.get("status") or {}).get("conditions") or [] if c.get("type") not in states]
    return kept + [
        {"type": kind, "status": status, "lastTransitionTime": format_time(turn.now)} for kind, status in states.items()
    ]


def _annotation(pod: Body, name: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(name, ""))
