"""EndpointSlices say where a Service's requests go: to those of its pods that are ready and are not being deleted."""

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.selecting import selected
from dovetail.adapters.simulator.play.tick import Tick, is_deleting, is_over, is_true
from dovetail.adapters.simulator.play.workloads import reference_to
from dovetail.model.values.json import Json

ENDPOINTS = "endpointslice-controller"


def keep_endpoint_slices(tick: Tick) -> None:
    """One slice for each Service with a selector."""
    for service in tick.mirror.every("Service"):
        if is_deleting(service) or not service["spec"].get("selector"):
            continue
        wanted = _slice_of(service, tick.mirror.every("Pod"))
        found = tick.mirror.get("EndpointSlice", objects.key_of(wanted))
        if found is None:
            tick.cluster(ENDPOINTS).create(wanted)
        elif found["endpoints"] != wanted["endpoints"]:
            patch = {"endpoints": wanted["endpoints"]}
            tick.cluster(ENDPOINTS).patch("EndpointSlice", objects.key_of(wanted), patch)


def _slice_of(service: Json, pods: list[Json]) -> Json:
    metadata, selector = service["metadata"], {"matchLabels": service["spec"]["selector"]}
    chosen = [
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == metadata["namespace"]
        and selected(selector, pod["metadata"].get("labels") or {})
        and not is_over(pod)
        and (pod.get("status") or {}).get("podIP")
    ]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {"kubernetes.io/service-name": metadata["name"]},
            "ownerReferences": [reference_to(service)],
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(pod) for pod in chosen],
    }


def _endpoint(pod: Json) -> Json:
    serving, terminating, metadata = is_true(pod, "Ready"), is_deleting(pod), pod["metadata"]
    return {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": serving and not terminating, "serving": serving, "terminating": terminating},
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {
            "kind": "Pod",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
