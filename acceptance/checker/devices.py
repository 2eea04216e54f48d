"""Judges whether pods can have the devices that they ask for where they were placed.

What is asked for is given in plain terms, so that nothing here reads an expression: a wish is a count ("all" for every
device that matches) and what must be equal (`model`) or at least (`memory`). For a node, or for each type of a new one,
some choice of devices must satisfy all claims of its pods at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Device = Mapping[str, Any]  # name, model, rack, memory
Claim = Mapping[str, Any]  # requests: lists of alternatives; same: whether all devices are of one rack
MOST: Final = 32


def matching(wish: Mapping[str, Any], devices: Sequence[Device]) -> list[Device]:
    """The devices that a wish is about."""
    return [
        each
        for each in devices
        if wish.get("model", each["model"]) == each["model"] and each["memory"] >= wish.get("memory", 0)
    ]


def choices(wish: Mapping[str, Any], devices: Sequence[Device], free: frozenset[str]) -> Iterator[list[Device]]:
    """What a wish may be given."""
    found = matching(wish, devices)
    if wish["count"] == "all":
        if 0 < len(found) <= MOST and all(each["name"] in free for each in found):
            yield found
        return
    yield from _combinations([each for each in found if each["name"] in free], wish["count"])


def _combinations(devices: Sequence[Device], count: int) -> Iterator[list[Device]]:
    if count == 0:
        yield []
        return
    for number, first in enumerate(devices):
        for rest in _combinations(devices[number + 1 :], count - 1):
            yield [first, *rest]


def satisfiable(claims: Sequence[Claim], devices: Sequence[Device], taken: frozenset[str] = frozenset()) -> bool:
    """Whether all these claims can have their devices at once."""
    wishes = [(number, request) for number, claim in enumerate(claims) for request in claim["requests"]]
    racks: list[set[str]] = [set() for _ in claims]

    def rest(step: int, free: frozenset[str], held: tuple[frozenset[str], ...]) -> bool:
        if step == len(wishes):
            return True
        number, alternatives = wishes[step]
        for wish in alternatives:
            for given in choices(wish, devices, free):
                of_racks = held[number] | {each["rack"] for each in given}
                if claims[number]["same"] and len(of_racks) > 1:
                    continue
                left = free - {each["name"] for each in given}
                if rest(step + 1, left, (*held[:number], of_racks, *held[number + 1 :])):
                    return True
        return False

    free = frozenset(each["name"] for each in devices) - taken
    return rest(0, free, tuple(frozenset(each) for each in racks))


def faults(
    world: Mapping[str, Any], existing: Mapping[str, Sequence[str]], new: Sequence[Mapping[str, Any]]
) -> list[str]:
    """All that is wrong with a placement. `new`: the pods and the types of each proposed node."""
    found = [
        f"{node}: not all of {list(pods)} can have their devices"
        for node, pods in existing.items()
        if not satisfiable(_open(world, pods), world["nodes"][node], frozenset(world["taken"].get(node, ())))
    ]
    found += [
        f"a new {each} for {draft['pods']}: it does not have their devices"
        for draft in new
        for each in draft["types"]
        if not satisfiable(_open(world, draft["pods"]), world["types"][each])
    ]
    found += list(_torn(world, [*existing.values(), *(draft["pods"] for draft in new)]))
    placed = {pod for pods in (*existing.values(), *(draft["pods"] for draft in new)) for pod in pods}
    return found + list(_left_out(world, existing, placed))


def _open(world: Mapping[str, Any], pods: Sequence[str]) -> list[Claim]:
    """The claims of these pods that have nothing yet; a shared one once."""
    shared = {name for pod in pods for kind, name in world["pods"][pod] if kind == "claim"}
    own = [world["templates"][name] for pod in pods for kind, name in world["pods"][pod] if kind == "template"]
    return [*own, *(world["claims"][name] for name in sorted(shared))]


def _torn(world: Mapping[str, Any], places: Sequence[Sequence[str]]) -> Iterator[str]:
    for name in world["claims"]:
        where = [n for n, pods in enumerate(places) if any(("claim", name) in world["pods"][pod] for pod in pods)]
        if len(where) > 1:
            yield f"pods that share {name} are on {len(where)} nodes"


def _left_out(world: Mapping[str, Any], existing: Mapping[str, Sequence[str]], placed: set[str]) -> Iterator[str]:
    """Pods without a place whose claims are their own, where a node that got no pod has their devices, or a new one."""
    for pod in sorted(set(world["pods"]) - placed):
        if any(kind == "claim" for kind, _ in world["pods"][pod]):
            continue
        claims = _open(world, [pod])
        for node, devices in world["nodes"].items():
            if not existing.get(node) and satisfiable(claims, devices, frozenset(world["taken"].get(node, ()))):
                yield f"{pod} has no place, and {node} has its devices"
        for name, devices in world["types"].items():
            if satisfiable(claims, devices):
                yield f"{pod} has no place, and a new {name} has its devices"
