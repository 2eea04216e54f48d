"""Judges whether an answer obeys every rule.

The final state is judged. A spread that was upset by pods which do not spread is no violation, because the order of
placement allows it. The answer is one sentence per violation.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from acceptance.checker.places import Place, World
from acceptance.checker.topology import topology_faults
from acceptance.checker.values import Allowed, amounts, by_key, lacking, plus, pod_amounts, tolerated
from dovetail.model.values.json import ReadOnlyJson

WELL_KNOWN = frozenset(
    {
        "karpenter.sh/nodepool",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "karpenter.sh/capacity-type",
        "node.kubernetes.io/windows-build",
        "size",
        "special",
        "integer",
        "karpenter.test.sh/reservation-id",
    }
)


def violations(given: ReadOnlyJson, answer: ReadOnlyJson) -> list[str]:
    """Everything that is wrong with an answer."""
    world = World(given)
    places = world.places(answer)
    found = [*_once(world, answer)]
    for place in places:
        if place.placed:
            found += _taints(place)
            found += _requirements(place)
            found += _ports(place)
            found += _volumes(world, place)
            found += _claim(world, place) if place.new else _room(place)
    found += _limits(world, places)
    found += _reservations(world, places)
    found += topology_faults(world, places)
    return found


def _once(world: World, answer: ReadOnlyJson) -> Iterator[str]:
    seen: set[str] = set()
    named = [(name, "a claim") for claim in answer["newNodeClaims"] for name in claim["pods"]]
    named += [(name, node) for node, names in answer["existing"].items() for name in names]
    for name, where in named:
        if name not in world.pods:
            yield f"{name} on {where} is no pod of the input"
        elif name in seen:
            yield f"{name} is placed twice"
        elif name in answer.get("errors", {}):
            yield f"{name} is placed and refused"
        seen.add(name)


def _name(pod: ReadOnlyJson) -> str:
    return str(pod["metadata"]["name"])


def _taints(place: Place) -> Iterator[str]:
    for pod in place.placed:
        for taint in place.taints:
            if taint.get("effect") != "PreferNoSchedule" and not tolerated(taint, pod["spec"].get("tolerations") or ()):
                yield f"{_name(pod)} does not tolerate {taint['key']} on {place.name}"


def terms_of(pod: ReadOnlyJson) -> list[dict[str, Allowed]]:
    """The or-ed alternatives of what a pod requires of labels."""
    selector = [{"key": k, "operator": "In", "values": [v]} for k, v in (pod["spec"].get("nodeSelector") or {}).items()]
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or [{}]
    return [by_key([*selector, *(term.get("matchExpressions") or ())]) for term in required]


def _meets(place: Place, term: Mapping[str, Allowed]) -> bool:
    for key, wanted in term.items():
        have = place.requirements.get(key)
        negative = wanted.inverted and wanted.low is None and wanted.high is None and wanted.listed
        absent_is_fine = bool(negative) or (not wanted.inverted and not wanted.listed)
        if have is None:
            if not absent_is_fine:
                return False
        elif not have.within(wanted) and not (absent_is_fine and have.finite() == frozenset()):
            return False
    return True


def _requirements(place: Place) -> Iterator[str]:
    for pod in place.placed:
        if not any(_meets(place, term) for term in terms_of(pod)):
            yield f"{_name(pod)} does not get the labels it requires on {place.name}"


def _ports(place: Place) -> Iterator[str]:
    taken: list[tuple[str, int, str, str]] = []
    there_before = {_name(pod) for pod in place.bound}
    for pod in place.pods:
        for container in pod["spec"].get("containers") or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    continue
                ip, wild = port.get("hostIP") or "0.0.0.0", ("0.0.0.0", "::")
                for other_ip, number, protocol, owner in taken:
                    if number != port["hostPort"] or owner == _name(pod) or {owner, _name(pod)} <= there_before:
                        continue
                    if protocol == (port.get("protocol") or "TCP") and (
                        ip == other_ip or ip in wild or other_ip in wild
                    ):
                        yield f"{_name(pod)} and {owner} want port {number} of {place.name}"
                taken.append((ip, port["hostPort"], port.get("protocol") or "TCP", _name(pod)))


def _room(place: Place) -> Iterator[str]:
    short = lacking(plus(pod_amounts(pod["spec"]) for pod in place.placed), place.room)
    if short:
        yield f"{place.name} has too little {short}"


def allocatable(entry: ReadOnlyJson, override: Mapping[str, Fraction]) -> dict[str, Fraction]:
    room = {**amounts(entry["capacity"]), **override}
    for overhead in (entry.get("kubeReserved"), entry.get("systemReserved"), entry.get("evictionThreshold")):
        for name, amount in amounts(overhead).items():
            if name in room:
                room[name] -= amount
    pages = sum(
        (a for n, a in {**amounts(entry["capacity"]), **override}.items() if n.startswith("hugepages-")), Fraction(0)
    )
    if "memory" in room:
        room["memory"] = max(Fraction(0), room["memory"] - pages)
    return room


def _filtered_by(place: Place) -> dict[str, Allowed]:
    """What the types were filtered by: a claim is narrowed to its reservations only after that."""
    if place.values("karpenter.sh/capacity-type") != frozenset(("reserved",)):
        return place.requirements
    later = ("karpenter.sh/capacity-type", "karpenter.test.sh/reservation-id")
    return {key: item for key, item in place.requirements.items() if key not in later}


def _offers(have_all: Mapping[str, Allowed], requirements: Mapping[str, str]) -> bool:
    """Whether an offering with these labels suits the claim."""
    for key, value in requirements.items():
        have = have_all.get(key)
        if have is None and key not in WELL_KNOWN:
            return False
        if have is not None and not have.holds(value):
            return False
    return True


def _daemons(world: World, place: Place, entry: ReadOnlyJson) -> list[dict[str, Fraction]]:
    """What the DaemonSets surely take on a type: those that no rule keeps off it."""
    found = []
    own = by_key(entry["requirements"])
    for item in world.given.get("daemonSets") or ():
        spec = item["spec"]["template"]["spec"]
        if any(
            t.get("effect") != "PreferNoSchedule" and not tolerated(t, spec.get("tolerations") or ())
            for t in place.taints
        ):
            continue
        terms = terms_of({"spec": spec})
        if len(terms) == 1 and all(
            key in own and (values := own[key].finite()) is not None and all(wanted.holds(v) for v in values)
            for key, wanted in terms[0].items()
        ):
            live = [
                pod
                for pod in world.pods.values()
                if any(
                    o.get("uid") == item["metadata"].get("uid") for o in pod["metadata"].get("ownerReferences") or ()
                )
            ]
            if not live:  # a live pod may ask for something else than the template
                found.append(pod_amounts(spec))
    return found


def _claim(world: World, place: Place) -> Iterator[str]:
    assert place.claim is not None
    known, filtered = world.types[place.pool], _filtered_by(place)
    needed = plus(pod_amounts(pod["spec"]) for pod in place.placed)
    if not place.claim["instanceTypes"] or len(place.claim["instanceTypes"]) > 600:
        yield f"{place.name} lists {len(place.claim['instanceTypes'])} types"
    for name in place.claim["instanceTypes"]:
        entry = known[name]
        for key, own in by_key(entry["requirements"]).items():
            have = filtered.get(key)
            negative = own.finite() == frozenset() and have is not None and have.inverted
            if have is not None and not have.meets(own) and not negative and have.finite() != frozenset():
                yield f"{name} of {place.name} cannot have the required {key}"
        wanted = plus([needed, *_daemons(world, place, entry)])
        if not any(
            offering.get("available", True)
            and _offers(filtered, offering["requirements"])
            and not lacking(wanted, allocatable(entry, amounts(offering.get("capacityOverride"))))
            for offering in entry["offerings"]
        ):
            yield f"{name} of {place.name} has no suitable offering with room"
    if (world.given.get("minValuesPolicy") or "Strict") == "Strict":
        yield from _min_values(place, [known[name] for name in place.claim["instanceTypes"]])


def _min_values(place: Place, types: list[ReadOnlyJson]) -> Iterator[str]:
    assert place.claim is not None
    for entry in place.claim["requirements"]:
        if entry.get("minValues"):
            listed = {
                v
                for item in types
                for r in item["requirements"]
                if r["key"] == entry["key"]
                for v in r.get("values") or ()
            }
            if len(listed) < entry["minValues"]:
                yield f"{place.name} has too few values of {entry['key']}"


def _limits(world: World, places: list[Place]) -> Iterator[str]:
    for name, pool in world.pools.items():
        limits = amounts(pool["spec"].get("limits"))
        new = [place for place in places if place.new and place.pool == name]
        if not limits or not new:
            continue
        used = plus(
            amounts((claim.get("status") or {}).get("capacity"))
            for claim in world.claims.values()
            if (claim["metadata"].get("labels") or {}).get("karpenter.sh/nodepool") == name
            and not claim["metadata"].get("deletionTimestamp")
        )
        for resource, limit in limits.items():
            if resource == "nodes":
                continue
            least = sum(
                (
                    min(
                        amounts(world.types[name][t]["capacity"]).get(resource, Fraction(0))
                        for t in p.claim["instanceTypes"]
                    )
                )
                for p in new
                if p.claim is not None
            )
            if not world.given.get("markForDeletion") and used.get(resource, Fraction(0)) + least > limit:
                yield f"{name} grows past its limit of {resource}"


def _reservations(world: World, places: list[Place]) -> Iterator[str]:
    counts: dict[str, int] = {}
    for lists in world.types.values():
        for entry in lists.values():
            for offering in entry["offerings"]:
                key = offering["requirements"].get("karpenter.test.sh/reservation-id")
                if key is not None:
                    count = offering.get("reservationCapacity") or 0
                    counts[key] = min(counts.get(key, count), count)
    held: dict[str, int] = {}
    for place in places:
        if place.new and place.values("karpenter.sh/capacity-type") == frozenset(("reserved",)):
            for key in place.values("karpenter.test.sh/reservation-id") or ():
                held[key] = held.get(key, 0) + 1
    for key, count in held.items():
        if count > counts.get(key, 0):
            yield f"reservation {key} is used {count} times"


def _volumes(world: World, place: Place) -> Iterator[str]:
    volumes = {v["metadata"]["name"]: v for v in world.given.get("pvs") or ()}
    claims = {c["metadata"]["name"]: c for c in world.given.get("pvcs") or ()}
    for pod in place.placed:
        for volume in pod["spec"].get("volumes") or ():
            direct = volume.get("persistentVolumeClaim")
            name = (
                direct["claimName"] if direct else f"{_name(pod)}-{volume['name']}" if "ephemeral" in volume else None
            )
            claim = claims.get(name) if name else None
            bound = volumes.get((claim or {}).get("spec", {}).get("volumeName") or "")
            if bound is None or bound["spec"].get("local") or bound["spec"].get("hostPath"):
                continue
            required = ((bound["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
            terms = [by_key(term["matchExpressions"]) for term in required if term.get("matchExpressions")]
            if terms and not any(_meets(place, term) for term in terms):
                yield f"{_name(pod)} cannot reach its volume from {place.name}"
