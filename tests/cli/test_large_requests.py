"""A bound pod that asks for more than anything has fills its node, and no figure grows beyond what can be read."""

from dovetail.answers.status.fleet_facts import FleetFacts
from dovetail.model.values.resources import CPU, MEMORY, parse_amount
from worlds.disruption import a_pair, a_pod, a_world


def test_a_request_of_1e400_fills_its_node_and_no_more() -> None:
    requests = {name: parse_amount(name, "1e400") for name in (CPU, MEMORY)}
    world = a_world([a_pair("n1"), a_pair("n2")], [a_pod("n1", requests=requests), a_pod("n2")])

    facts = FleetFacts.of(world)

    assert (facts.rooms["n1"].cpu_share, facts.rooms["n1"].memory_share) == (1.0, 1.0)
    cpu, memory = facts.use_of()
    assert 0.0 < cpu.share < 1.0 and memory.share < 1.0
    assert facts.running == 2
