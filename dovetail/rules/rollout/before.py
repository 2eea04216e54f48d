"""How the owners of a pool's pods fared when the step began, which the gate `nodes` compares with.

It stands in the status as one short text, so that the object stays small: of each owner a digest, how many pods it
wanted and how many of them it lacked. Those that lacked some come first, then the smallest: of a large one there are
mostly pods on other nodes to compare with.
"""

from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from dovetail.model.objects.pod_index import NO_PODS, NodePods
from dovetail.model.objects.pod_rules import is_active, is_terminal
from dovetail.model.own.rollouts import BEGUN, Rollout, RolloutStatus
from dovetail.model.pods import Pod, controller_of
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot

OwnerKey = tuple[str, str]  # namespace and UID of a controller
NOBODY: Final = "", ""
_ENDS: Final = ("Job", "Node")  # whose pods are not made anew, or are bound to their node
LONGEST: Final = 1_100  # characters: 180 owners of one pod
_DIGEST: Final = 4  # characters of an owner's digest
STARTS_WITHIN: Final = 300.0  # seconds in which a pod that runs well elsewhere becomes ready, unless it fails before


@dataclass(slots=True)
class Fares:
    """What one owner wants, wherever its pods are. `lacks`: pods that are bound and not ready although they have had
    the time; `absent`: pods that are not even made, as where admission rejects them."""

    wants: int = 0
    present: int = 0
    lacks: int = 0
    ready: int = 0

    @property
    def absent(self) -> int:
        return max(0, self.wants - self.present)

    @property
    def lacking(self) -> int:
        """What is noted when a step begins: of a pod that is on its way nobody knows whether it was well."""
        return max(0, self.wants - self.ready)

    def excuses(self, alone: bool) -> int:
        """How many pods prove nothing if they are unready now. `alone`: there are none on other nodes. Beside others
        that are well only one of those that were on their way is taken to be ill by itself."""
        return self.lacking if alone else min(self.lacking, self.lacks + 1)


def owner_of(pod: Pod) -> tuple[str, str]:
    """Namespace and UID of the controller that makes such a pod anew; none of one that is not meant to run for good."""
    owner = controller_of(pod.owners)
    return (pod.namespace, owner.uid) if owner is not None and owner.kind not in _ENDS else NOBODY


def with_owners(rollout: Rollout, moved: RolloutStatus, snapshot: Snapshot, now: float) -> RolloutStatus:
    """The status after a move. What was noted is kept where an earlier step begins again: pods may do worse by then."""
    status, names = rollout.status, [each.name for each in rollout.steps]
    if moved.state not in BEGUN:
        return replace(moved, owners="")
    is_next = status.step not in names or names.index(moved.step) > names.index(status.step)
    if moved.begun == status.begun and (moved.step == status.step or not is_next):
        return moved
    return replace(moved, owners=begun_with(snapshot, snapshot.pools[rollout.pool], now))


def begun_with(snapshot: Snapshot, pool: NodePool, now: float) -> str:
    """The text of this moment, of owners with pods on the pool's nodes."""
    nodes = {claim.node_name for claim in snapshot.claims_by_pool.get(pool.name, ())} - {""}
    owners = {each for node in nodes for each in snapshot.pods_by_node.get(node, NO_PODS).kept(_owners_on)}
    found = fares_of(snapshot, owners, now)
    order = sorted(found, key=lambda owner: (not found[owner].lacking, found[owner].wants, owner))
    text = " ".join(_entry(owner, found[owner]) for owner in order[:LONGEST])
    return text if len(text) <= LONGEST else text[: LONGEST + 1].rpartition(" ")[0]


def fares_of(snapshot: Snapshot, owners: Collection[OwnerKey], now: float) -> Mapping[OwnerKey, Fares]:
    """How these owners fare. One whose object is not watched wants the pods that it has."""
    if not owners:
        return {}
    found, uids = {owner: Fares() for owner in owners}, {uid for _, uid in owners}
    for pod in [p for p in snapshot.pods.values() if p.owners and (p.owners[0].uid in uids or len(p.owners) > 1)]:
        fares = found.get(owner_of(pod))
        if fares is not None and not is_terminal(pod):  # one that ends is replaced once it has ended
            fares.present += 1
            fares.ready += is_active(pod) and bool(pod.ready)
            fares.lacks += is_active(pod) and bool(pod.node_name) and not pod.ready and not is_starting(pod, now)
    known = {(each.namespace, each.uid): each.replicas for each in snapshot.selector_sources.values()}
    for owner, fares in found.items():
        wanted = known.get(owner)
        fares.wants = fares.present if wanted is None else wanted
    return found


def is_starting(pod: Pod, now: float) -> bool:
    """Whether one that is not ready may still become so."""
    return not pod.failing and now - (pod.started or pod.created) < STARTS_WITHIN


def entries_of(text: str) -> Mapping[str, Fares]:
    """What was written, by digest. What nobody of ours wrote is passed over."""
    return dict(_read(text))


def digest_of(owner: OwnerKey) -> str:
    return urlsafe_b64encode(blake2b("/".join(owner).encode(), digest_size=3).digest()).decode()


def _owners_on(pods: NodePods) -> frozenset[OwnerKey]:
    return frozenset(owner_of(pod) for pod in pods if is_active(pod)) - {NOBODY}


def _entry(owner: OwnerKey, fares: Fares) -> str:
    unwell = f":{fares.lacks}" if fares.lacks != fares.lacking else ""
    return f"{digest_of(owner)}{fares.wants}{f':{fares.lacking}{unwell}' if fares.lacking else ''}"


def _read(text: str) -> Iterator[tuple[str, Fares]]:
    for entry in text.split():
        numbers = entry[_DIGEST:].split(":")
        if all(map(str.isdecimal, numbers)) and len(numbers) <= 3:
            wants, lacking = int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0
            lacks = int(numbers[2]) if len(numbers) > 2 else lacking
            yield entry[:_DIGEST], Fares(wants, wants, lacks, wants - lacking)
