"""The text of gauges that is kept from scrape to scrape is what would be written anew."""

from dataclasses import replace

from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.karpenters.cluster_lines import ClusterLines
from worlds.disruption import a_pair, a_pod, a_pool, a_world


def values(lines: list[str]) -> dict[str, float]:
    series = [line.rpartition(" ") for text in lines for line in text.splitlines() if not line.startswith("#")]
    return {name: round(float(value), 3) for name, _, value in series}


def text_of(kept: ClusterLines, world: Snapshot) -> str:
    return b"".join(kept.blocks(world)).decode()


def anew(world: Snapshot) -> dict[str, float]:
    return values([text_of(ClusterLines(), world)])


def test_every_change_is_in_the_next_scrape() -> None:
    """MET-4: what is written is what a first scrape would say, whatever was written before."""
    kept = ClusterLines()
    one = a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1"), a_pod("n2", name="b")], pools=[a_pool()])
    bound = {uid: replace(pod, node_name="n2") for uid, pod in one.pods.items()}
    moved = replace(one, pods=bound, now=one.now + 30)
    relabelled = replace(
        moved, nodes={name: replace(node, labels={**node.labels, "x": "y"}) for name, node in moved.nodes.items()}
    )
    unmanaged = replace(relabelled, claims={})
    reported = replace(unmanaged, nodes={name: replace(node) for name, node in unmanaged.nodes.items()})
    unready = replace(reported, pods={uid: replace(pod, ready=False) for uid, pod in reported.pods.items()})
    turned = replace(unready, pods=dict(reversed([*unready.pods.items()])))
    (first, _), (last, other) = turned.pods.items()
    swapped = replace(turned, pods={first: replace(turned.pods[first], node_name="n1"), last: other})
    fewer = replace(swapped, nodes={"n2": swapped.nodes["n2"]})
    none = replace(fewer, pods={})

    for world in (
        one,
        one,
        moved,
        relabelled,
        unmanaged,
        reported,
        unready,
        turned,
        swapped,
        fewer,
        none,
        unready,
        one,
    ):
        assert values([text_of(kept, world)]) == anew(world)


def test_a_node_that_cannot_be_shown_leaves_the_others_in_place() -> None:
    world = a_world([a_pair("n1"), a_pair("n2", node={"created": None})], [a_pod("n1", name="p")])
    text = text_of(ClusterLines(), world)
    assert 'node_name="n1"' in text and 'node_name="n2"' not in text


def test_families_are_announced_once() -> None:
    world = a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1")], pools=[a_pool()])
    text = text_of(ClusterLines(), world).splitlines()
    announced = [line.split()[2] for line in text if line.startswith("# TYPE")]
    assert len(announced) == len(set(announced))
