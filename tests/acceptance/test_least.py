"""The bound on the cost of an answer: never above one that can be had, and near where whole pods decide."""

import gzip
import random
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from acceptance.bench.inputs import openb
from acceptance.bench.inputs.made import a_pod, a_pool, diverse, standing_nodes
from acceptance.least.bound import least_of
from acceptance.least.reading import NotBounded, question_of
from acceptance.placement_worlds import settings_of, snapshot_of
from acceptance.vectors.kind_placement import total_cost
from dovetail.model.values.json import Json
from dovetail.placement.place_pods import Index, place
from dovetail.placement.settings import DOVETAIL, CostSettings
from tests.recorded import BENCHMARKS

_ROUNDS = 30.0  # seconds of the processor, far more than these small ones take


def _type(name: str, cpu: int, price: float, arch: str = "amd64") -> Json:
    zone, kind = "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
    return {
        "name": name,
        "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [name]},
            {"key": "kubernetes.io/arch", "operator": "In", "values": [arch]},
            {"key": zone, "operator": "In", "values": ["a"]},
            {"key": kind, "operator": "In", "values": ["on-demand"]},
        ],
        "capacity": {"cpu": str(cpu), "memory": "100Gi", "pods": "50"},
        "offerings": [{"requirements": {zone: "a", kind: "on-demand"}, "price": price, "available": True}],
    }


def _least(pods: list[Json], types: list[Json]) -> float:
    given = {"nodePools": [a_pool()], "pods": pods, "instanceTypes": {"*": types}}
    return least_of(question_of(given), _ROUNDS).dollars


def _of_six(spec: Json | None = None, count: int = 3) -> list[Json]:
    return [a_pod(number, "6", "1Gi", {"app": "web"}, spec or {}) for number in range(count)]


def test_whole_pods_are_bounded_and_not_poured_ones() -> None:
    """Poured, eighteen cores would cost 18/8. In whole pods, a pair costs 1.9, and a pair and a half 2.85."""
    assert _least(_of_six(), [_type("small", 8, 1.0), _type("large", 12, 1.9)]) == pytest.approx(2.85, rel=0.004)


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        ({}, 6.0),
        ({"nodeSelector": {"kubernetes.io/arch": "arm64"}}, 9.0),
        ({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}}}, 12.0),
        ({"topologySpreadConstraints": [
            {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 2,
             "labelSelector": {"matchLabels": {"app": "web"}}}]}, 6.0),
        ({"topologySpreadConstraints": [
            {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1,
             "labelSelector": {"matchLabels": {"app": "web"}}}]}, 12.0),
    ],
    ids=["plain", "selector", "anti-affinity", "spread of two", "spread of one"],
)  # fmt: skip
def test_rules_of_one_node_count(spec: Json, least: float) -> None:
    """Four pods, two of which fit on a node of either type: without rules two nodes for amd64 at three dollars."""
    types = [_type("amd", 12, 3.0), _type("arm", 12, 4.5, "arm64")]
    assert _least(_of_six(spec, 4), types) == pytest.approx(least, rel=0.004)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 6)]])
def test_no_answer_costs_less(seed: int) -> None:
    chance = random.Random(seed)
    types = orjson.loads(gzip.decompress((BENCHMARKS / "instance_types_400.json.gz").read_bytes()))
    given = {**diverse(60, seed), "instanceTypes": {"*": chance.sample(types, 40)}}
    least = least_of(question_of(given), 5.0).dollars
    steps = CostSettings(everywhere=True, seconds=1e6, steps=300)
    for cost in (CostSettings(), steps):
        settings = replace(settings_of(given, DOVETAIL), cost=cost)
        placement = place(Index(snapshot_of(given), settings))
        if not placement.refused:
            assert total_cost(placement, settings) >= least * (1 - 1e-6) > 0


def test_where_nodes_stand_nothing_is_said() -> None:
    with pytest.raises(NotBounded, match="nodes that stand"):
        question_of(standing_nodes(2, 1))


_LIST = "name,cpu_milli,memory_mib,num_gpu\nopenb-pod-0000,12000,16384,1\nopenb-pod-0001,6000,12288,0\n"


def test_a_public_list_of_pods_becomes_an_input(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(_LIST)

    assert openb.main([str(tmp_path / "pods.csv"), str(tmp_path / "x.json.gz"), "--without-gpu"]) == 0
    document = orjson.loads(gzip.decompress((tmp_path / "x.json.gz").read_bytes()))
    [pod] = document["input"]["pods"]
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "6000m", "memory": "12288Mi"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,cpu\na,1\n", "no column cpu_milli, memory_mib, num_gpu; it has name, cpu"),
        (_LIST.replace("16384", "much"), "line 2: memory_mib is no whole number: 'much'"),
        (_LIST.partition("\n")[0] + "\n", "no pod"),
    ],
)
def test_a_file_that_is_no_such_list_is_named(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pods.csv").write_text(text)

    assert openb.main([str(tmp_path / "pods.csv"), str(tmp_path / "x.json.gz")]) == 2
    assert says in capsys.readouterr().err
