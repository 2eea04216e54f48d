"""Where do a pod's volumes force it to be, and how many more may a node attach?

For pods with volumes (PLC-25 to PLC-27, PLC-50 to PLC-55) and for existing nodes (PLC-84, PLC-85). A pod gets a list of
alternative requirement sets. They are kept apart from its own requirements, because they constrain the node but not the
domains of a spread. The hostname of a local volume is left out: no new node could ever have it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from dovetail.model.names import HOSTNAME
from dovetail.model.objects.pod_rules import is_active
from dovetail.model.objects.workloads import StorageClass, Volume, VolumeClaim
from dovetail.model.pods import Pod, claim_key
from dovetail.model.scheduling.requirements import (
    RequirementSet,
    conflicts,
    from_expressions,
    from_labels,
    merge,
    narrows,
)
from dovetail.model.snapshot import Snapshot
from dovetail.placement.settings import PlacementSettings

Alternatives = tuple[RequirementSet, ...]

# Each is tried for each node draft and type. Three volumes with a term for each of three zones make seven at most.
MOST_ALTERNATIVES: Final = 64


class VolumeLookupError(LookupError):
    """Something that a pod's volumes refer to does not exist."""


class TooManyAlternatives(ValueError):
    """A pod's volumes can be combined in more ways than there is time to try."""


def _class_of(claim: VolumeClaim, snapshot: Snapshot) -> StorageClass | None:
    return snapshot.storage_classes.get(claim.storage_class) if claim.storage_class else None


def driver_of(claim: VolumeClaim, snapshot: Snapshot) -> str:
    """The CSI driver that a volume claim counts for; empty without one (PLC-27)."""
    if claim.volume_name:
        volume = snapshot.volumes.get(claim.volume_name)
        return volume.driver if volume is not None else ""
    found = _class_of(claim, snapshot)
    return found.provisioner if found is not None else ""


def _fault_unbound(claim: VolumeClaim, snapshot: Snapshot, settings: PlacementSettings) -> str:
    if not claim.storage_class:
        return "unbound volume claim must define a storage class"
    found = _class_of(claim, snapshot)
    if found is None:
        return f"storage class {claim.storage_class} not found"
    if found.immediate:
        return "unbound volume claim with binding mode Immediate"
    for term in found.topologies:
        for expression in term:
            if expression.key in settings.unsupported_topology_keys:
                return f"topology key {expression.key} is not supported"
    return ""


def _fault_of_claim(claim: VolumeClaim, snapshot: Snapshot, settings: PlacementSettings) -> str:
    """Why a volume claim keeps its pod out of the pass; empty if it does not (PLC-25, PLC-26)."""
    if claim.deleting:
        return "volume claim is being deleted"
    if claim.phase == "Lost":
        return "volume claim has lost its volume"
    if claim.volume_name:
        volume = snapshot.volumes.get(claim.volume_name)
        if volume is None or volume.deleting:
            return f"volume {claim.volume_name} is missing or being deleted"
        if not claim.bind_completed:
            return "volume claim is not completely bound"
    elif fault := _fault_unbound(claim, snapshot, settings):
        return fault
    driver = driver_of(claim, snapshot)
    return f"provisioner {driver} is not supported" if driver in settings.unsupported_provisioners else ""


def volume_fault(pod: Pod, snapshot: Snapshot, settings: PlacementSettings) -> str:
    """Why the pod's volumes keep it out of the pass; empty if they do not (PLC-25)."""
    for use in pod.shape.volumes:
        key = claim_key(pod, use)
        claim = snapshot.volume_claims.get(key)
        if claim is None:
            return f"volume claim {key} not found"
        if fault := _fault_of_claim(claim, snapshot, settings):
            return f"{key}: {fault}"
    try:
        volume_alternatives(pod, snapshot)
    except TooManyAlternatives as excess:
        return str(excess)
    return ""


def _of_volume(volume: Volume) -> list[RequirementSet]:
    """One alternative per term, without the hostname of a local volume (PLC-51)."""
    found: list[RequirementSet] = []
    for term in volume.node_terms:
        kept = [e for e in term.expressions if not (volume.local and e.key == HOSTNAME)]
        if kept or (term.expressions and volume.local):
            found.append(from_expressions(kept))
    return found


def _of_claim(claim: VolumeClaim, snapshot: Snapshot) -> list[RequirementSet]:
    if claim.volume_name:
        volume = snapshot.volumes.get(claim.volume_name)
        if volume is None:
            raise VolumeLookupError(f"volume {claim.volume_name} not found")
        return _of_volume(volume)
    if not claim.storage_class:
        return []
    found = _class_of(claim, snapshot)
    if found is None:
        raise VolumeLookupError(f"storage class {claim.storage_class} not found")
    places: list[RequirementSet] = [from_expressions(term) for term in found.topologies]
    if not claim.selected_node:
        return places
    # The kube-scheduler binds the pod to no other node, also where this one is gone (PLQ-68).
    node = snapshot.nodes.get(claim.selected_node)
    hostname = node.labels.get(HOSTNAME, claim.selected_node) if node is not None else claim.selected_node
    only = from_labels({HOSTNAME: hostname})
    return [merge(place, only) for place in places or [{}]]


def _folded(present: list[RequirementSet], added: list[RequirementSet]) -> list[RequirementSet]:
    """The pairs that can hold together; if none can, all pairs, so that the pod is refused with a reason (PLC-52).

    A pair that an earlier one covers is left out: trying it would be in vain, and pairs of pairs double with each
    volume.
    """
    if present == [{}]:
        return added
    pairs = [(a, b) for a in present for b in added]
    agreeing = [(a, b) for a, b in pairs if not conflicts(a, b)]
    most = max(MOST_ALTERNATIVES, len(present), len(added))
    kept: list[RequirementSet] = []
    for a, b in agreeing or pairs[:most]:
        both = merge(a, b)
        if any(narrows(both, before) for before in kept):
            continue
        if len(kept) == most:
            raise TooManyAlternatives(f"its volumes can be together in more than {most} ways: {_keys(kept)}")
        kept.append(both)
    return kept


def _keys(alternatives: list[RequirementSet]) -> str:
    return ", ".join(sorted({key for alternative in alternatives for key in alternative})[:5])


def volume_alternatives(pod: Pod, snapshot: Snapshot) -> Alternatives:
    """Requirement sets of which a node must meet one; a single empty one for most pods (PLC-50 to PLC-52).

    Many volumes of a pod may share one StorageClass: repeating what its places allow changes nothing.
    """
    alternatives: list[RequirementSet] = [{}]
    asked: list[list[RequirementSet]] = []
    for use in pod.shape.volumes:
        key = claim_key(pod, use)
        claim = snapshot.volume_claims.get(key)
        if claim is None:
            raise VolumeLookupError(f"volume claim {key} not found")
        added = _of_claim(claim, snapshot)
        if added and added not in asked:
            asked.append(added)
            alternatives = _folded(alternatives, added)
    return tuple(alternatives)


def kept_out_by_others(pending: Iterable[Pod], promised: Iterable[Pod], snapshot: Snapshot) -> dict[str, str]:
    """The pending pods, by UID, that wait for another to give up a ReadWriteOncePod claim, and why (PLQ-64).

    The kube-scheduler would bind them to no node, however many are launched. A pod that is being deleted holds no
    claim: a node may be made for its successor.
    """
    single = {key for key, claim in snapshot.volume_claims.items() if claim.single_pod}
    if not single:
        return {}
    running = (pod for pod in snapshot.pods.values() if pod.node_name and is_active(pod))
    holders: dict[str, Pod] = {}
    for pod in (*running, *promised):
        for key in _claims_of(pod) & single:
            holders.setdefault(key, pod)
    found: dict[str, str] = {}
    for pod in sorted(pending, key=lambda pod: (pod.created, pod.uid)):
        own = _claims_of(pod) & single
        held = min((key for key in own if key in holders), default="")
        if held:
            found[pod.uid] = f"volume claim {held} is for one pod at a time, and pod {holders[held].key} has it"
        else:
            holders.update(dict.fromkeys(own, pod))
    return found


def _claims_of(pod: Pod) -> set[str]:
    return {claim_key(pod, use) for use in pod.shape.volumes}


def attached_by(pod: Pod, snapshot: Snapshot) -> dict[str, set[str]]:
    """The volume claims of a pod per driver; a claim that is merely missing does not count (PLC-84, PLC-85)."""
    found: dict[str, set[str]] = {}
    for use in pod.shape.volumes:
        key = claim_key(pod, use)
        claim = snapshot.volume_claims.get(key)
        if claim is None:
            continue
        if claim.volume_name and claim.volume_name not in snapshot.volumes:
            raise VolumeLookupError(f"volume {claim.volume_name} not found")
        if driver := driver_of(claim, snapshot):
            found.setdefault(driver, set()).add(key)
    return found


def attached_on(pods: Iterable[Pod], snapshot: Snapshot) -> dict[str, set[str]]:
    """The volume claims of all pods of a node, per driver."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        if pod.shape.volumes and pod.phase not in ("Succeeded", "Failed"):
            try:
                mine = attached_by(pod, snapshot)
            except VolumeLookupError:
                continue  # the pod runs there already; volumes that cannot be looked up are not counted
            for driver, keys in mine.items():
                found.setdefault(driver, set()).update(keys)
    return found


def exceeds_limit(present: Mapping[str, set[str]], added: Mapping[str, set[str]], limits: Mapping[str, int]) -> str:
    """The driver whose limit the pod would break; empty without one (PLC-84)."""
    for driver, keys in added.items():
        limit = limits.get(driver)
        if limit is not None and len(present.get(driver, set()) | keys) > limit:
            return driver
    return ""
