"""What is left of pods that are gone: nothing of their shapes and requests, and no more than bounded memories of texts.

Jobs are the ordinary case: each pod has labels, an owner and times that no other pod ever has.
"""

import gc
import tracemalloc
from pathlib import Path
from typing import Final

import pytest

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.parsing import pods as parsing
from dovetail.adapters.kubernetes_json.parsing import shapes
from dovetail.adapters.kubernetes_json.pod_kind import POD
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time

START: Final = 1_787_000_000.0
MEGABYTE: Final = 2**20
ALIVE: Final = 50  # pods at a time


def a_job_pod(number: int) -> Json:
    """As the Job controller makes one, with what the kubelet writes."""
    job = f"report-{number}"
    times = [format_time(START + 7 * number + second) for second in range(3)]
    labels = {
        "batch.kubernetes.io/controller-uid": f"uid-{number}",
        "batch.kubernetes.io/job-name": job,
        "controller-uid": f"uid-{number}",
        "job-name": job,
    }
    return {
        "metadata": {
            "name": f"{job}-x",
            "namespace": "reports",
            "uid": f"pod-{number}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": times[0],
            "labels": labels,
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"uid-{number}", "controller": True}
            ],
        },
        "spec": {
            "nodeName": f"node-{number % 100}",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
                    ]
                }
            },
            "containers": [
                {"name": "c", "image": "x", "resources": {"requests": {"cpu": f"{number % 900}m", "memory": "1Gi"}}}
            ],
        },
        "status": {
            "phase": "Running",
            "startTime": times[1],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": times[2]}],
        },
    }


def a_large_pod(number: int) -> Json:
    """A megabyte in each place that is read, never the same."""
    raw = a_job_pod(number)
    text = f"{number}-" + "x" * MEGABYTE
    raw["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": text}
    raw["metadata"]["labels"]["large"] = text
    raw["spec"]["nodeSelector"] = {"large": text}
    raw["spec"]["containers"][0]["resources"]["requests"]["memory"] = "0" * MEGABYTE + str(number)
    return raw


def come_and_go(cache: Cache, numbers: range) -> None:
    """Jobs one after the other, some of them at a time."""
    for number in numbers:
        cache.apply("Pod", a_job_pod(number), deleted=False)
        if number >= numbers.start + ALIVE:
            _go(cache, number - ALIVE, numbers.stop + number)
    for number in range(max(numbers.start, numbers.stop - ALIVE), numbers.stop):
        _go(cache, number, 2 * numbers.stop + number)


def _go(cache: Cache, number: int, version: int) -> None:
    raw = a_job_pod(number)
    raw["metadata"]["resourceVersion"] = str(version)
    cache.apply("Pod", raw, deleted=True)


def test_no_shape_and_no_requests_outlive_their_last_pod() -> None:
    cache = Cache([POD])
    parsing._COMMON.clear()
    gc.collect()
    before = len(shapes._SHAPES), len(parsing._REQUESTS)

    cache.apply("Pod", a_job_pod(1), deleted=False)
    cache.apply("Pod", a_job_pod(2), deleted=False)
    held = len(shapes._SHAPES), len(parsing._REQUESTS)
    _go(cache, 1, 10)
    _go(cache, 2, 11)
    parsing._COMMON.clear()
    gc.collect()

    assert held == (before[0] + 2, before[1] + 2)
    assert (len(shapes._SHAPES), len(parsing._REQUESTS)) == before


def test_nothing_of_a_megabyte_stays_when_its_pod_is_gone() -> None:
    """Labels, selectors, annotations and quantities of a megabyte each."""
    cache = Cache([POD], report=lambda _: None)
    numbers = range(8)
    tracemalloc.start()
    try:
        for number in numbers:
            cache.apply("Pod", a_large_pod(number), deleted=False)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        for number in numbers:
            _go(cache, number, 100 + number)
        gc.collect()
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert held > 8 * MEGABYTE
    assert left < MEGABYTE


def _resident() -> int:
    """The memory of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


@pytest.mark.soak
def test_memory_is_flat_after_a_hundred_thousand_jobs() -> None:
    """Within 50 MB from when the first thousand have gone."""
    cache = Cache([POD])
    come_and_go(cache, range(1000))
    gc.collect()
    before = _resident()

    for start in range(1000, 101_000, 10_000):
        come_and_go(cache, range(start, start + 10_000))
        gc.collect()
        print(f"after {start + 9000:,} Job pods: {(_resident() - before) / MEGABYTE:+.1f} MB")

    assert _resident() - before < 50 * MEGABYTE
