"""Instance types are asked for once per pool, and a pool that cannot be listed leaves the others as they are."""

from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.model.nodes import NodeClassRef
from dovetail.model.objects.watched_kinds import PLACEMENT
from dovetail.model.pools import Catalogue, NodePool
from dovetail.ports.failures import Unreachable
from tests.activities.test_ordering import FakeClasses, FakeView
from tests.lifecycle.objects import a_new_pool
from tests.placement.builders import TYPES
from worlds.fakes import World

OTHER = NodeClassRef(group="karpenter.other.example", kind="OtherNodeClass", name="default")


class Listing(FakeClasses):
    """A cloud that cannot list one of the pools now."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def catalogue(self, pool: NodePool) -> Catalogue:
        self.asked.append(pool.name)
        if pool.name == "broken":
            raise Unreachable("ec2", "the call never arrived")
        return Catalogue(types=TYPES)


async def test_each_pool_is_listed_once_and_one_that_cannot_be_listed_is_left_out() -> None:
    """PLC-14: the pools of another provider are not asked for."""
    pools = {name: a_new_pool(name) for name in ("broken", "first", "second")}
    foreign = a_new_pool("foreign", template={"node_class": OTHER})
    catalogues = Listing()
    view = FakeView(World(), {**pools, "foreign": foreign})

    found = (await Snapshots(view, catalogues).whole(PLACEMENT)).catalogues

    assert sorted(catalogues.asked) == ["broken", "first", "second"]
    assert {name: (len(each.types), bool(each.error)) for name, each in found.items()} == {
        "broken": (0, True),
        "first": (len(TYPES), False),
        "second": (len(TYPES), False),
    }
