"""Bound pods start, run, end and, once deleted, stop within their grace.

What kubelets do, for every Node whose kubelet works. Annotations on a pod may say how long it takes to stop, whether it
ever becomes ready and whether it ends by itself. A deleted pod stops soon, as most processes do; only one whose
annotation says so uses up its grace.
"""

import hashlib
from typing import Any

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.cloud.instances import by_provider_id
from dovetail.adapters.simulator.play.instances import KUBELET, lives
from dovetail.adapters.simulator.play.tick import Tick, condition_of, is_deleting, is_over, is_true
from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time, parse_time

STOP_SECONDS = "embedded.dovetail.sh/stop-seconds"  # how long the containers take to stop when asked
RUN_SECONDS = "embedded.dovetail.sh/run-seconds"  # the pod succeeds after that time
NEVER_READY = "embedded.dovetail.sh/never-ready"
BREAKS_ON = "embedded.dovetail.sh/breaks-on"  # the pod is never ready on a node that runs this image
CRASHES_ON = "embedded.dovetail.sh/crashes-on"  # likewise, and its container says why


def move_pods(tick: Tick) -> None:
    """Bring every bound pod to the state that it should have now."""
    working = {n["metadata"]["name"]: is_true(n, names.READY) for n in tick.mirror.every("Node") if lives(tick, n)}
    for pod in tick.mirror.every("Pod"):
        node = pod.get("spec", {}).get("nodeName")
        if node not in working:
            continue
        if is_deleting(pod):
            _stop(tick, pod)
        elif working[node] and not is_over(pod):
            _advance(tick, pod)


def _stop(tick: Tick, pod: Json) -> None:
    metadata = pod["metadata"]
    last = parse_time(metadata["deletionTimestamp"])
    asked = last - metadata.get("deletionGracePeriodSeconds", 0)
    needed = float(_annotation(pod, STOP_SECONDS) or tick.settings.delay("pod_stop"))
    if tick.reached(min(asked + needed, last)):
        tick.cluster(KUBELET).delete("Pod", objects.key_of(pod), metadata["uid"], 0)


def _advance(tick: Tick, pod: Json) -> None:
    status = pod.get("status") or {}
    if status.get("phase") == "Pending":
        bound = condition_of(pod, "PodScheduled") or {}
        since = parse_time(bound.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"])
        if tick.reached(since + tick.settings.delay("pod_start")):
            _set_status(tick, pod, _running(tick, pod))
        return
    seconds = _annotation(pod, RUN_SECONDS)
    if seconds and tick.reached(parse_time(status["startTime"]) + float(seconds)):
        _set_status(tick, pod, {"phase": "Succeeded", "conditions": _conditions(tick, pod, ready=False)})


def _running(tick: Tick, pod: Json) -> Json:
    crashes = _is_on(tick, pod, CRASHES_ON)
    ready = not (crashes or _annotation(pod, NEVER_READY) or _is_on(tick, pod, BREAKS_ON))
    status = {
        "phase": "Running",
        "startTime": format_time(tick.now),
        "podIP": _address_of(pod),
        "conditions": _conditions(tick, pod, ready=ready),
    }
    if crashes:
        waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
        status["containerStatuses"] = [{"name": each["name"], "state": waiting} for each in pod["spec"]["containers"]]
    return status


def _address_of(pod: Json) -> str:
    """One that no other pod is likely to have."""
    digest = hashlib.sha256(pod["metadata"]["uid"].encode()).digest()
    return f"10.{digest[0]}.{digest[1]}.{1 + digest[2] % 254}"


def _is_on(tick: Tick, pod: Json, annotation: str) -> bool:
    """Whether its node runs the image that the annotation names."""
    image = _annotation(pod, annotation)
    if not image:
        return False
    node = tick.mirror.get("Node", pod["spec"]["nodeName"]) or {}
    row = by_provider_id(tick.connection, (node.get("spec") or {}).get("providerID", ""))
    return row is not None and row.image == image


def _set_status(tick: Tick, pod: Json, status: Json) -> None:
    tick.cluster(KUBELET).patch("Pod", objects.key_of(pod), {"status": status}, "status")


def _conditions(tick: Tick, pod: Json, *, ready: bool) -> list[dict[str, Any]]:
    word = "True" if ready else "False"
    states = {"Initialized": "True", "ContainersReady": word, "Ready": word}
    kept = [c for c in (pod.get("status") or {}).get("conditions") or [] if c.get("type") not in states]
    return kept + [
        {"type": kind, "status": status, "lastTransitionTime": format_time(tick.now)} for kind, status in states.items()
    ]


def _annotation(pod: Json, name: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(name, ""))
