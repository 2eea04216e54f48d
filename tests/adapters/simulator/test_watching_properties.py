"""Whatever is written, in whatever order, the view ends up as the file is."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.feed import news_since
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.api_server.store import Store
from testbed.simulated_world import SimulatedWorld
from worlds.manifests import node_manifest, pod_manifest

KINDS = ("Node", "Pod")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["apply", "delete", "finish", "look"]),
        st.sampled_from(KINDS),
        st.just("a"),
        st.integers(0, 3),
    ),
    min_size=10,
    max_size=40,
)
Step = tuple[str, str, str, int]


def act(world: SimulatedWorld, step: Step) -> None:
    verb, kind, name, number = step
    key = f"default/{name}" if kind == "Pod" else name
    body = pod_manifest(name, {"n": str(number)}, nodeName="a") if kind == "Pod" else node_manifest(name, n=str(number))
    if verb == "apply":
        world.apply({"kind": kind, "metadata": body["metadata"]} if world.get(kind, key) else body)
    elif verb == "delete":
        world.delete(kind, key, grace=number)
    elif verb == "finish":
        world.delete(kind, key, grace=0)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_the_view_ends_up_as_the_file_is(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "world.sqlite"
        world, store = SimulatedWorld.create(file), Store(file)
        cache = Cache(CLUSTER_KINDS)
        revision = 0
        for step in [*steps, ("look", "Node", "a", 0)]:
            if step[0] != "look":
                try:
                    act(world, step)
                except Rejected as rejected:
                    assert rejected.code == 404
                continue
            with store.reading() as connection:
                news, revision = news_since(connection, revision)
            for each in news:
                if each.kind in KINDS:
                    cache.apply(each.kind, each.body, deleted=each.deleted)

        with store.reading() as connection:
            expected = {
                (kind, body["metadata"]["uid"], body["metadata"]["resourceVersion"])
                for kind in KINDS
                for body in objects.every(connection, kind)
            }
        held = {(kind, value.uid, value.resource_version) for kind in KINDS for value in cache.objects(kind).values()}
        store.close()
        world.close()
        assert held == expected
