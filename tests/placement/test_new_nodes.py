"""PLC-59, PLC-116, PLC-126, PLC-137: what a new node has from its pool, and which types it may become."""

from dataclasses import replace

from dovetail.model import names
from dovetail.model.pods import Expression
from dovetail.model.pools import Offering
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.resources import parse_resources
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import CLASS, a_general_pool, a_snapshot, a_type, a_waiting_pod, one_of, placed


def test_a_new_node_has_everything_that_its_pools_template_says() -> None:
    """PLC-59."""
    startup = (Taint(key="starts", effect="NoSchedule"),)
    pool = a_general_pool(
        requirements=(one_of("team", "a"),),
        annotations={"note": "x"},
        startup_taints=startup,
        expire_after=3600.0,
        termination_grace=60.0,
        hash="123",
    )

    (node,) = placed(a_snapshot([a_waiting_pod("p")], pools=[pool])).new

    assert (node.node_class, node.startup_taints, node.taints) == (CLASS, startup, ())
    assert (node.expire_after, node.termination_grace) == (3600.0, 60.0)
    assert node.labels == {"team": "a", names.NODE_POOL: "default", "karpenter.k8s.aws/ec2nodeclass": "default"}
    assert (node.annotations["note"], node.annotations[names.NODE_POOL_HASH]) == ("x", "123")
    assert {names.REGISTERED, names.INITIALIZED}.isdisjoint(node.requirements)


def test_memory_in_huge_pages_is_no_memory_for_others() -> None:
    """PLC-116."""
    plain = a_type("plain", "2", 0.2)
    paged = replace(a_type("paged", "2", 0.1), capacity=parse_resources({"cpu": "2", "memory": "4Gi", "pods": "9"}))
    pages = replace(paged, capacity={**paged.capacity, "hugepages-2Mi": int(3.5 * 2**30)})

    def types(*found: object) -> list[str]:
        snapshot = a_snapshot([a_waiting_pod("p")], types=found)  # type: ignore[arg-type]
        return [item.name for node in placed(snapshot).new for item in node.types]

    assert (types(plain, paged), types(plain, pages)) == (["paged", "plain"], ["plain"])


def test_a_type_costs_what_its_cheapest_offering_does() -> None:
    """PLC-126: also where one zone sells it at two prices."""
    both, between = a_type("both", "2", 0.5), a_type("between", "2", 0.3)
    one = Offering(requirements=both.offerings[0].requirements, price=0.05)
    twice = replace(both, offerings=(one, *both.offerings))

    (node,) = placed(a_snapshot([a_waiting_pod("p")], types=(between, twice))).new

    assert [item.name for item in node.types] == ["both", "between"]


def test_a_cut_that_breaks_a_minimum_gives_the_node_up_unless_the_policy_is_best_effort() -> None:
    """PLC-137, DIS-88."""
    three = (Expression(key=names.INSTANCE_TYPE, operator="Exists", min_values=3),)
    snapshot = a_snapshot([a_waiting_pod("p")], pools=[a_general_pool(requirements=three)])

    strict = placed(snapshot, PlacementSettings(max_types=2))
    lenient = placed(snapshot, PlacementSettings(max_types=2, min_values_policy="BestEffort"))

    assert (strict.new, [each.reasons for each in strict.refused]) == ((), [("min_values",)])
    assert [[item.name for item in node.types] for node in lenient.new] == [["small", "medium"]]
