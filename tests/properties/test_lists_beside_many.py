"""What one object lists is paid for once, not once for each node, pod or NodePool of the cluster.

A tenant's object may list ten thousand of something, and a cluster has thousands of nodes. So what the list adds to the
work of a pass is compared in a small cluster and in a larger one: lines of code, and bytes at the peak. What the watch
tells is read before.
"""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import pytest

from dovetail.model.values.json import Json
from tests.properties.counted_lines import with_lines
from tests.properties.hostile import a_sound_node, a_sound_pod, a_sound_pool, meta
from tests.properties.long_lists import REQUIRED, expression
from tests.properties.test_long_lists import MARKS, PASSES, Cost, snapshot_of

SHORT, LONG = 1, 2_000
FEW, MANY = 3, 24
MOST_TIMES: Final = 2.0  # of what the list adds beside few: eight, where it is paid for each time
NOISE: Final = 512 * 1024  # bytes that memories of the process take now and then


def resources(mark: str, count: int, amount: str = "1") -> dict[str, str]:
    """Those that exist nowhere."""
    return {f"example.com/r{mark}-{i}": amount for i in range(count)}


def asking(name: str, requests: dict[str, str], **spec: Any) -> Json:
    pod = a_sound_pod(name, **spec)
    pod["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": requests}
    return pod


def running(name: str, node: str, requests: dict[str, str], **metadata: Any) -> Json:
    pod = asking(name, {"cpu": "100m", **requests}, nodeName=node)
    pod["metadata"].update(metadata)
    pod["status"] = {"phase": "Running", "startTime": "2023-11-14T20:00:00Z", "conditions": []}
    return pod


def daemon(requests: dict[str, str], terms: list[Json], **more: Any) -> Json:
    spec = {
        "containers": [{"name": "c", "resources": {"requests": requests}}],
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}} if terms else {},
        **more,
    }
    return {"metadata": meta("daemon", namespace="default"), "spec": {"template": {"metadata": {}, "spec": spec}}}


Objects = dict[str, list[Json]]


def of_daemons(requests: dict[str, str], many: int) -> Objects:
    """A DaemonSet whose pods run everywhere, as those of a device whose plugin is gone do."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "daemon", "uid": "uid-daemon", "controller": True}
    pods = [running(f"d{i}", f"n{i}", requests, ownerReferences=[owner]) for i in range(many)]
    return {"DaemonSet": [daemon(requests, [])], "Pod": pods}


def of_terms(expressions: list[Json]) -> Objects:
    return {"DaemonSet": [daemon({}, [{"matchExpressions": expressions}])]}


def of_budget(expressions: list[Json], many: int) -> Objects:
    """Of pods that are not alike, as those of a StatefulSet are not."""
    budget = {
        "metadata": meta("pdb", namespace="default"),
        "spec": {"selector": {"matchExpressions": expressions}, "maxUnavailable": 1},
        "status": {"disruptionsAllowed": 1},
    }
    return {
        "PodDisruptionBudget": [budget],
        "Pod": [running(f"s{i}", f"n{i}", {}, labels={"pod-name": f"s{i}"}) for i in range(many)],
    }


CASES: Final[dict[str, Callable[[str, int, int], Objects]]] = {
    "resources of a pod that waits": lambda m, n, _: {"Pod": [asking("list", resources(m, n))]},
    "resources of a pod that runs": lambda m, n, _: {"Pod": [running("list", "n0", resources(m, n))]},
    "resources of a DaemonSet": lambda m, n, many: of_daemons(resources(m, n), many),
    "expressions of a DaemonSet": lambda m, n, _: of_terms([expression(m, i) for i in range(n)]),
    "expressions of a DaemonSet that nothing suits": lambda m, n, _: of_terms(
        [expression(m, i, "In") for i in range(n)]
    ),
    "node selector of a DaemonSet": lambda m, n, _: {
        "DaemonSet": [daemon({}, [], nodeSelector={f"k{m}-{i}": "v" for i in range(n)})]
    },
    "expressions of a PDB": lambda m, n, many: of_budget([expression(m, i) for i in range(n)], many),
    "resources of a DaemonSet, none of any": lambda m, n, many: of_daemons(resources(m, n, "0"), many),
}


def cluster(case: str, mark: str, count: int, many: int) -> Objects:
    """So many nodes with a pod each, and NodePools; `good` waits and can be placed."""
    pairs = [a_sound_node(f"n{i}", "p0") for i in range(many)]
    objects: Objects = {
        "NodePool": [a_sound_pool(f"p{i}") for i in range(many)],
        "Node": [node for node, _ in pairs],
        "NodeClaim": [claim for _, claim in pairs],
        "Pod": [a_sound_pod("good"), *(running(f"own{i}", f"n{i}", {"memory": "1Gi"}) for i in range(many))],
    }
    for kind, raws in CASES[case](mark, count, many).items():
        objects.setdefault(kind, []).extend(raws)
    return objects


def added(case: str, one_pass: str, many: int) -> Cost:
    """What the list costs beside so many."""
    short, long = (cost(cluster(case, f"{next(MARKS)}", count, many), one_pass) for count in (SHORT, LONG))
    return Cost(long.lines - short.lines, long.bytes - short.bytes)


def cost(objects: Objects, one_pass: str) -> Cost:
    """Of a pass over these."""
    snapshot = snapshot_of(objects)
    gc.disable()  # or the peak would hang on when it comes by
    tracemalloc.start()
    try:
        _, lines = with_lines(lambda: PASSES[one_pass](snapshot))
        return Cost(lines, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.parametrize("one_pass", sorted(PASSES))
@pytest.mark.parametrize("case", sorted(CASES))
def test_a_long_list_is_not_paid_for_again_beside_more(case: str, one_pass: str) -> None:
    few, more = added(case, one_pass, FEW), added(case, one_pass, MANY)
    assert more.lines <= MOST_TIMES * few.lines + 2_000, (few, more)
    assert more.bytes <= MOST_TIMES * max(0, few.bytes) + NOISE, (few, more)
