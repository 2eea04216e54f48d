"""One benchmark input in a process of its own; prints one JSON line.

Started by `make bench`. What is timed goes from the bytes of the JSON to the placement: decoding, parsing, compiling,
solving. Reading the file and judging the answer are not. Pods, nodes and claims come in pages, as they are listed.
"""

import gc
import gzip
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

import orjson

from acceptance.bench.asked import beginning_seconds, cost_settings, least_seconds
from acceptance.bench.inputs import unlike_nodes
from acceptance.bench.inputs.made import GENERATED, GROWTH, diverse, standing_nodes
from acceptance.binding.rounds import Coming, after_binding
from acceptance.placement_worlds import settings_of, snapshot_of
from acceptance.vectors.kind_placement import answer_of, total_cost
from dovetail.model.places.placements import Placement
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import format_resources
from dovetail.placement.place_pods import Index, SimulationOptions, place, simulate
from dovetail.placement.settings import DOVETAIL, CostSettings, PlacementSettings
from research.days import NAME as DAY

Line = dict[str, Any]


def _stopwatch(seconds: float) -> Callable[[], bool]:
    until = time.process_time() + seconds
    return lambda: time.process_time() >= until


# POLICY=cost looks for cheaper nodes, for as many processor seconds per thousand pods as COST_SECONDS says.
_COST = cost_settings(os.environ, _stopwatch)
_LEAST_SECONDS, _BEGINNING_SECONDS = least_seconds(os.environ), beginning_seconds(os.environ)
_BOUND = (  # whose answer is bound, and whether its pods are nominated to the nodes meant for them
    ("bound", _COST, True),
    ("bound if nobody is nominated", _COST, False),
    ("default bound", CostSettings(), False),
)
_SECOND = 1.0
_GROUPS = 10  # nodes come up in so many groups
_PAGE = 500  # how many objects a list of ours asks for at once (dovetail.adapters.kube.paging)


def _decompressed(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes())


def _types_bytes(folder: Path, name: str) -> bytes:
    file = folder / (name if name.endswith(".gz") else f"{name}.gz")
    return _decompressed(file if file.exists() else folder / name.removesuffix(".gz"))


@dataclass(frozen=True)
class _Pages:
    """A list as the API server sends it: in pages, each of which is decoded, read and let go before the next."""

    pages: tuple[bytes, ...]

    def __iter__(self) -> Iterator[Line]:
        for page in self.pages:
            yield from orjson.loads(page)


@dataclass(frozen=True)
class Given:
    """An input in raw JSON: its long lists in pages, and all the rest."""

    lists: dict[str, _Pages]
    rest: bytes

    @classmethod
    def of(cls, document: Line) -> "Given":
        """The document, written down."""
        lists = {
            field: _Pages(tuple([orjson.dumps(listed[at : at + _PAGE]) for at in range(0, len(listed), _PAGE)]))
            for field in ("pods", "nodes", "nodeClaims")
            if (listed := document.get(field))
        }
        return cls(lists, orjson.dumps({field: document[field] for field in document if field not in lists}))


def _world(given: Given, types: bytes | None) -> tuple[Snapshot, PlacementSettings]:
    raw = {**orjson.loads(given.rest), **given.lists}
    if types is not None:
        listed = orjson.loads(types)
        raw["instanceTypes"] = {"*": listed["instanceTypes"] if isinstance(listed, dict) else listed}
    return snapshot_of(raw), replace(settings_of(raw, DOVETAIL), cost=_COST)


def _best_of(repeat: int, act: Callable[[], Any]) -> tuple[float, float, Any]:
    """The shortest wall and processor time of several runs, the collector off, and what the last one returned.

    What a run returned is held during the next, as a worker holds one snapshot while it makes another: memory that was
    given back whole would have to be asked of the system anew, which is a tenth of a large run's time.
    """
    wall = processor = float("inf")
    result = None
    for _ in range(repeat):
        gc.collect()
        gc.disable()
        start, start_processor = time.perf_counter(), time.process_time()
        result = act()
        wall = min(wall, time.perf_counter() - start)
        processor = min(processor, time.process_time() - start_processor)
        gc.enable()
        if wall > 5 * _SECOND:
            break
    return wall, processor, result


def _peak_megabytes() -> int:
    status = Path("/proc/self/status")
    if status.exists():  # a child's ru_maxrss starts from what its parent held
        [held] = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(held) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _written(placement: Placement, snapshot: Snapshot) -> Line:
    unbound = {pod.name for pod in snapshot.pods.values() if not pod.node_name}
    answer = answer_of(placement, unbound)
    for claim in answer["newNodeClaims"]:
        claim["requests"] = format_resources(claim["requests"])
    return answer


def _judge(
    name: str, taken: tuple[float, float], world: tuple[Snapshot, PlacementSettings], placement: Placement
) -> Line:
    snapshot, settings = world
    return {
        "input": name,
        "pods": sum(1 for pod in snapshot.pods.values() if not pod.node_name),
        "seconds": round(taken[0], 4),
        "cpu": round(taken[1], 4),
        "nodes": len(placement.new),
        "refused": len(placement.refused),
        "cost": round(total_cost(placement, settings), 4),
        "MB": _peak_megabytes(),
        **({"not judged": [each.says for each in placement.unjudged]} if placement.unjudged else {}),
    }


def _placed(given: Given, types: bytes | None, repeat: int) -> tuple[tuple[float, float], Placement]:
    wall, processor, placement = _best_of(repeat, lambda: place(Index(*_world(given, types))))
    return (wall, processor), placement


def run_document(name: str, folder: Path, out: Path | None, repeat: int) -> Line:
    """An input of the folder, compared with what upstream took."""
    document = orjson.loads(_decompressed(folder / f"{name}.json.gz"))
    types = _types_bytes(folder, document["instanceTypesFile"]) if document.get("instanceTypesFile") else None
    given = Given.of(document["input"])
    taken, placement = _placed(given, types, repeat)
    world = _world(given, types)
    line = _judge(name, taken, world, placement)
    if out is not None:
        (out / f"{name}.answer.json").write_bytes(orjson.dumps(_written(placement, world[0])))
    recorded = document.get("result") or {}
    line |= _beside_upstream(line["cost"], taken[0], recorded)
    if _COST.everywhere:
        costs = recorded.get("total_cheapest_cost") or [line["cost"]]
        whole = _with_types(document["input"], types)
        line |= _after_binding(whole, placement, costs[0])
        line |= _beside_least(whole, line)
    return line


def _with_types(raw: Line, types: bytes | None) -> Line:
    if types is None:
        return raw
    listed = orjson.loads(types)
    return {**raw, "instanceTypes": {"*": listed["instanceTypes"] if isinstance(listed, dict) else listed}}


def _beside_least(whole: Line, line: Line) -> Line:
    """The answer's cost over the least that any answer costs; nothing where a pod has no place, or none can be said."""
    if line["refused"] or not _LEAST_SECONDS:
        return {}
    from acceptance.least.bound import least_of  # a solver that the other inputs need not hold in memory
    from acceptance.least.programs import NotSolved
    from acceptance.least.reading import NotBounded, question_of

    try:
        least = least_of(question_of(whole), _LEAST_SECONDS, _BEGINNING_SECONDS)
    except NotBounded as reason:
        return {"no least": str(reason)}
    except NotSolved as reason:
        return {"no bound": f"no bound was found in {_BEGINNING_SECONDS:g} s ({reason})"}
    return {"least": round(least.dollars, 4), "over least": _part(line["cost"], least.dollars)}


def _beside_upstream(cost: float, seconds: float, recorded: Mapping[str, Any]) -> Line:
    """The figures of upstream that were recorded, and ours as parts of them; what cannot be compared is left out."""
    found: Line = {}
    if recorded.get("wall_ms"):
        upstream = recorded["wall_ms"][0] / 1000
        found |= {"upstream": upstream, "ratio": round(upstream / seconds, 1)}
    if recorded.get("node_count"):
        found["upstream_nodes"] = recorded["node_count"]
    if recorded.get("total_cheapest_cost"):  # least and most over its runs: ties are random there
        least = recorded["total_cheapest_cost"][0]
        found |= {"over upstream": _part(cost, least), "upstream_cost": recorded["total_cheapest_cost"]}
    return found


def _part(cost: float, of: float) -> float | None:
    """One cost over another; None where there is none to compare with."""
    return round(cost / of, 4) if of else None


def _after_binding(whole: Line, placement: Placement, upstream_cost: float) -> Line:
    """What the answer comes to once the kube-scheduler has bound its pods, and what the default answer comes to.

    The model begins with an empty cluster: of inputs with nodes that stand it says nothing.
    """
    if whole.get("nodes") or not placement.new:
        return {}
    line: Line = {}
    costs: dict[str, float] = {}
    known = {pod["metadata"]["name"] for pod in whole["pods"]}
    for words, cost, nominates in _BOUND:
        settings = replace(settings_of(whole, DOVETAIL), cost=cost)

        def answered(given: Mapping[str, Any], settings: PlacementSettings = settings) -> Line:
            waiting = {pod["metadata"]["name"] for pod in given["pods"] if not pod["spec"].get("nodeName")}
            return answer_of(place(Index(snapshot_of(given), settings)), waiting)

        answer = answer_of(placement, known) if cost is _COST else answered(whole)
        found = after_binding(whole, answer, answered, Coming(_GROUPS), nominates)
        costs[words] = found.cost
        line |= {words: _part(found.cost, upstream_cost), f"{words}, second round": found.left[0]}
    return line | {"bound over default bound": _part(costs["bound"], costs["default bound"])}


def run_generated(name: str, folder: Path, out: Path | None, repeat: int) -> Line:
    """An input that is made."""
    make, upstream = next((make, upstream) for known, make, upstream in GENERATED if known == name)
    document = make()
    given, types = Given.of(document), _types_bytes(folder, "instance_types_400.json.gz")
    taken, placement = _placed(given, types, repeat)
    world = _world(given, types)
    line = _judge(name, taken, world, placement)
    if upstream is not None:
        line |= {"upstream": upstream, "ratio": round(upstream / taken[0], 1)}
    if world[0].nodes:
        index = Index(*world)
        place(index)
        wall, processor, _ = _best_of(repeat, lambda: place(index))
        line |= {"seconds_indexed": round(wall, 4), "cpu_indexed": round(processor, 4)}
    if out is not None:
        (out / f"{name}.answer.json").write_bytes(orjson.dumps(_written(placement, world[0])))
        (out / f"{name}.input.json").write_bytes(orjson.dumps(document))
    return line


def run_simulations(folder: Path) -> Line:
    """PLF-22: many simulations on one index, each without one other node."""
    types = _types_bytes(folder, "instance_types_400.json.gz")
    line: Line = {"input": "generated_simulations", "upstream": 0.054}
    for pending in (0, 50):
        snapshot, settings = _world(Given.of(standing_nodes(2_000, pending)), types)
        index = Index(snapshot, settings)
        names = [item.node_name for item in index.table.nodes[::20]]
        options = SimulationOptions(spare_settling_nodes=True)
        simulate(index, frozenset(names[:1]), options)
        gc.collect()
        gc.disable()
        taken = []
        for node in names:
            start = time.process_time()
            simulate(index, frozenset((node,)), options)
            taken.append(time.process_time() - start)
        gc.enable()
        taken.sort()
        key = "milliseconds" if not pending else f"milliseconds_with_{pending}_pending"
        line[key] = {"median": round(1000 * taken[len(taken) // 2], 3), "most": round(1000 * taken[-1], 3)}
        if not pending:
            line["seconds"] = round(taken[len(taken) // 2], 6)
            line["ratio"] = round(0.054 / taken[len(taken) // 2], 1)
    return line | {"MB": _peak_megabytes()}


def run_growth(folder: Path, repeat: int) -> Line:
    """Processor seconds by number of pods and by number of nodes: near-linear, or not."""
    types = _types_bytes(folder, "instance_types_400.json.gz")
    by_pods, by_nodes = {}, {}
    for count in GROWTH:
        given = Given.of(diverse(count))
        by_pods[str(count)] = round(_placed(given, types, min(repeat, 3))[0][1], 4)
    for count in (500, 1_000, 2_000, 4_000):
        given = Given.of(standing_nodes(count, 200))
        by_nodes[str(count)] = round(_placed(given, types, min(repeat, 3))[0][1], 4)
    return {
        "input": "generated_growth",
        "by_pods": by_pods,
        "exponent_in_pods": _exponent(by_pods),
        "by_nodes": by_nodes,
        "exponent_in_nodes": _exponent(by_nodes),
        "MB": _peak_megabytes(),
    }


def _exponent(seconds: dict[str, float]) -> float:
    """Between half and all: 1 is linear, 2 is quadratic. The fixed costs of the small ones would flatter it."""
    sizes = sorted(seconds, key=int)
    large, largest = sizes[len(sizes) // 2], sizes[-1]
    return round(log(seconds[largest] / seconds[large]) / log(int(largest) / int(large)), 2)


def _elsewhere(name: str, repeat: int) -> dict[str, Any]:
    """Imported only where asked for: SDKs in memory would make placement's collections of garbage dearer."""
    if name.startswith("generated_aws_"):
        from acceptance.bench.inputs import aws as bench_aws

        return bench_aws.ROWS[name](repeat)
    if name == unlike_nodes.NAME:
        return unlike_nodes.line_of()
    if name == DAY:
        from research.days import short

        return short.line_of()
    if name.startswith("disruption_"):
        from acceptance.bench.inputs import disruption as bench_disruption

        return bench_disruption.line_of(name)
    from acceptance.bench.inputs import lifecycle

    return lifecycle.measure(name)


def machine_speed() -> float:
    """Milliseconds of the processor for a fixed piece of work: shared machines differ by half from minute to minute,
    and figures of different runs are compared by this."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        kept: dict[int, int] = {}
        for number in range(100_000):
            kept[number % 997] = kept.get(number % 997, 0) + number
        best = min(best, time.process_time() - start)
    return 1000 * best


def main(arguments: list[str]) -> int:
    """Run the named input."""
    name, folder, out, repeat = arguments
    before = machine_speed()
    target = Path(out) if out else None
    if name == "generated_simulations":
        line = run_simulations(Path(folder))
    elif name == "generated_growth":
        line = run_growth(Path(folder), int(repeat))
    elif name in (DAY, unlike_nodes.NAME) or name.startswith(("generated_aws_", "disruption_", "lifecycle_")):
        line = _elsewhere(name, int(repeat))
    elif any(name == known for known, _, _ in GENERATED):
        line = run_generated(name, Path(folder), target, int(repeat))
    else:
        line = run_document(name, Path(folder), target, int(repeat))
    line["machine"] = round((before + machine_speed()) / 2, 1)
    print(orjson.dumps(line).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
