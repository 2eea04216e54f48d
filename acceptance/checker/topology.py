"""Judges whether spread, affinity and anti-affinity hold in the final state.

A spread is judged where every counted pod of the answer spreads by the same rule. Otherwise a pod that may go anywhere
could have been placed after the others and upset it.
"""

import json
from collections.abc import Iterator, Mapping

from acceptance.checker.places import HOSTNAME, Place, World
from acceptance.checker.values import by_key, canonical, selects
from dovetail.model.values.json import ReadOnlyJson


def topology_faults(world: World, places: list[Place]) -> Iterator[str]:
    """All violations of rules about the places of other pods."""
    placed = [(pod, place) for place in places for pod in place.placed]
    yield from _anti_affinity(world, places)
    yield from _affinity(world, places, placed)
    yield from _spread(world, places, placed)


def _space(pod: ReadOnlyJson) -> str:
    return pod["metadata"].get("namespace") or "default"


def labels_of(pod: ReadOnlyJson) -> Mapping[str, str]:
    return pod["metadata"].get("labels") or {}


def required_of(pod: ReadOnlyJson, kind: str) -> list[ReadOnlyJson]:
    terms = ((pod["spec"].get("affinity") or {}).get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return list(terms or ())


def _in_spaces(world: World, term: ReadOnlyJson, owner: ReadOnlyJson, other: ReadOnlyJson) -> bool:
    listed, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    if not listed and selector is None:
        return _space(owner) == _space(other)
    chosen = {
        name for name, space in world.namespaces.items() if selects(selector, space["metadata"].get("labels") or {})
    }
    return _space(other) in {*listed, *chosen}


def _matches(world: World, term: ReadOnlyJson, owner: ReadOnlyJson, other: ReadOnlyJson) -> bool:
    return selects(term.get("labelSelector"), labels_of(other)) and _in_spaces(world, term, owner, other)


def _together(a: Place, b: Place, key: str) -> bool:
    """Whether two places may be in one domain; open places are not known to be anywhere."""
    if a is b:
        return True
    if key == HOSTNAME:
        return False
    mine, theirs = a.values(key), b.values(key)
    return mine is not None and theirs is not None and bool(mine & theirs)


def _anti_affinity(world: World, places: list[Place]) -> Iterator[str]:
    holders = [
        (pod, place, term) for place in places for pod in place.pods for term in required_of(pod, "podAntiAffinity")
    ]
    by_place: dict[int, list[ReadOnlyJson]] = {id(place): place.pods for place in places}
    for owner, place, term in holders:
        key = canonical(term["topologyKey"])
        if place.values(key) is None and key != HOSTNAME:
            continue
        candidates = [place] if key == HOSTNAME else places
        for other_place in candidates:
            if not _together(place, other_place, key):
                continue
            for other in by_place[id(other_place)]:
                both_bound = owner in place.bound and other in other_place.bound
                if other is not owner and not both_bound and _matches(world, term, owner, other):
                    yield f"{owner['metadata']['name']} and {other['metadata']['name']} share {key}"


def _affinity(world: World, places: list[Place], placed: list[tuple[ReadOnlyJson, Place]]) -> Iterator[str]:
    for pod, place in placed:
        for term in required_of(pod, "podAffinity"):
            key = canonical(term["topologyKey"])
            near = [p for p in places if _together(place, p, key)]
            company = any(other is not pod and _matches(world, term, pod, other) for p in near for other in p.pods)
            if not company and not _matches(world, term, pod, pod):
                yield f"{pod['metadata']['name']} is near no pod that it wants on {key}"


def _constraint_key(pod: ReadOnlyJson, constraint: ReadOnlyJson) -> str:
    relevant = {
        "constraint": constraint,
        "selector": pod["spec"].get("nodeSelector"),
        "affinity": (pod["spec"].get("affinity") or {}).get("nodeAffinity"),
        "tolerations": pod["spec"].get("tolerations"),
        "space": _space(pod),
        "values": [labels_of(pod).get(key) for key in constraint.get("matchLabelKeys") or ()],
    }
    return json.dumps(relevant, sort_keys=True)


def _spread(world: World, places: list[Place], placed: list[tuple[ReadOnlyJson, Place]]) -> Iterator[str]:
    owners: dict[str, list[tuple[ReadOnlyJson, Place]]] = {}
    constraints: dict[str, ReadOnlyJson] = {}
    for pod, place in placed:
        for constraint in pod["spec"].get("topologySpreadConstraints") or ():
            if constraint["whenUnsatisfiable"] == "DoNotSchedule" and constraint.get("labelSelector") is not None:
                key = _constraint_key(pod, constraint)
                owners.setdefault(key, []).append((pod, place))
                constraints[key] = constraint
    for key, members in owners.items():
        yield from _one_spread(world, places, placed, constraints[key], members)


def _domains(world: World, places: list[Place], key: str, pod: ReadOnlyJson) -> set[str]:
    """The domains that the pod itself allows: what types and pools list, and what nodes have."""
    found: set[str] = set()
    for name, pool in world.pools.items():
        template = pool["spec"]["template"]
        labels = [
            {"key": k, "operator": "In", "values": [v]} for k, v in (template["metadata"].get("labels") or {}).items()
        ]
        own = by_key([*(template["spec"].get("requirements") or ()), *labels]).get(key)
        if own is not None and own.finite():
            found |= own.finite() or set()
        for entry in world.types[name].values():
            for requirement in entry["requirements"]:
                if requirement["key"] == key and requirement["operator"] == "In":
                    found |= {v for v in requirement["values"] if own is None or own.holds(v)}
    for place in places:
        if not place.new:
            found |= place.values(key) or set()
    selector = [{"key": k, "operator": "In", "values": [v]} for k, v in (pod["spec"].get("nodeSelector") or {}).items()]
    wanted = by_key(selector).get(key)
    return {domain for domain in found if wanted is None or wanted.holds(domain)}


def _counting(place: Place) -> list[ReadOnlyJson]:
    """A bound pod that is being deleted no longer counts."""
    return [*(pod for pod in place.bound if not pod["metadata"].get("deletionTimestamp")), *place.placed]


def _one_spread(
    world: World,
    places: list[Place],
    placed: list[tuple[ReadOnlyJson, Place]],
    constraint: ReadOnlyJson,
    members: list[tuple[ReadOnlyJson, Place]],
) -> Iterator[str]:
    key, selector, sample = canonical(constraint["topologyKey"]), constraint["labelSelector"], members[0][0]
    special = (
        constraint.get("minDomains")
        or constraint.get("matchLabelKeys")
        or constraint.get("nodeTaintsPolicy") == "Honor"
        or (sample["spec"].get("affinity") or {}).get("nodeAffinity")
        or sample["spec"].get("nodeSelector")
    )
    owning = {id(pod) for pod, _ in members}
    counted = [(p, place) for p, place in placed if _space(p) == _space(sample) and selects(selector, labels_of(p))]
    if special or any(id(pod) not in owning for pod, _ in counted):
        return
    counts: dict[str, int] = {}
    if key != HOSTNAME:
        counts = dict.fromkeys(_domains(world, places, key, sample), 0)
    for place in places:
        values = place.values(key)
        if values is not None and len(values) == 1:
            (domain,) = values
            here = sum(1 for p in _counting(place) if _space(p) == _space(sample) and selects(selector, labels_of(p)))
            counts[domain] = counts.get(domain, 0) + here
    least = 0 if key == HOSTNAME else min(counts.values(), default=0)
    for pod, place in members:
        values = place.values(key)
        if values is None or len(values) != 1:
            yield f"{pod['metadata']['name']} spreads over {key} and its node has no single one"
            continue
        (domain,) = values
        if selects(selector, labels_of(pod)) and counts[domain] - least > constraint["maxSkew"]:
            yield f"{pod['metadata']['name']} breaks the skew of {key}: {dict(sorted(counts.items()))}"
            return
