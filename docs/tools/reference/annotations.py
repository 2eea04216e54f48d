"""The page of names under dovetail.sh/: which of them people write, which are Dovetail's own notes."""

from typing import Final, NamedTuple

from docs.tools.reference.tables import code, table
from dovetail.model import names


class Word(NamedTuple):
    """One annotation or tag."""

    key: str
    where: str
    does: str


WRITTEN_BY_PEOPLE: Final = (
    Word(
        names.DRAIN_FIRST,
        "NodePool",
        '`"true"`: a node is drained before its NodeClaim is deleted; until then its disruption can be cancelled',
    ),
    Word(
        names.REPLACE_FIRST,
        "NodePool, or NodeClaim",
        '`"true"`: before a node expires its replacement is launched, within the budget for drift',
    ),
    Word(
        names.DISRUPTION_WINDOW,
        "Pod",
        "when it may be moved: `Sat,Sun 02:00-06:00 Europe/Berlin`, several with semicolons; "
        'outside it counts as `karpenter.sh/do-not-disrupt: "true"`',
    ),
    Word(
        names.PAUSED,
        "NodePool; Namespace `kube-system` for all",
        "what is not begun: `disruption`, `expiry`, `launches`, `drains`, `all`, with commas",
    ),
    Word(names.PAUSED_UNTIL, "beside it", "when the pause ends by itself, RFC 3339; without it when it is resumed"),
    Word(names.PAUSED_BY, "beside it", "who paused; shown wherever the pause is"),
    Word(names.PAUSED_REASON, "beside it", "why; shown wherever the pause is"),
    Word(
        names.CANCEL,
        "NodeClaim",
        "calls its disruption off; the text is the reason. Taken off when it is answered, by an Event",
    ),
    Word(
        names.CANCEL_BY,
        "beside it",
        "who asks, as `dovetail cancel` writes it down; without it the Event names the program that annotated",
    ),
    Word(
        names.REPLACE,
        "NodeClaim",
        "its node is replaced, within the budget for drift; the text is the reason. Answered by an Event; "
        f"`{names.CANCEL}` takes it back",
    ),
    Word(names.REPLACE_BY, "beside it", "who asks, as `dovetail replace` writes it down; `dovetail log` names them"),
    Word(
        names.REPLACE_NOW,
        "beside it",
        '`"true"`: it is drained at once, as PodDisruptionBudgets permit, without a new node first and outside the '
        "budgets of its NodePool",
    ),
    Word(
        f"{names.PRE_DRAIN_HOOK}NAME",
        "NodeClaim, from the NodePool's template too",
        "who must agree before the first eviction, and takes it off; `deny: why` calls the disruption off "
        "([hooks](../guides/blocked-drains.md#hooks))",
    ),
    Word(f"{names.PRE_TERMINATE_HOOK}NAME", "likewise", "likewise, before the end of the instance"),
    Word(
        names.DECISION,
        "NodeClaim",
        "`force`, `wait 6h` or `cancel`: the answer to a drain that asks, as `dovetail decide` writes it; `HookWaits` "
        "and `VolumesAttached` after `force` end those waits as well. Taken off when it is carried out, by an Event",
    ),
    Word(names.DECISION_BY, "beside it", "who decides"),
    Word(
        names.PLACEMENT,
        "NodePool",
        "`cost`: cheaper nodes than Karpenter would take; `default`: not, whatever `PLACEMENT_POLICY` says",
    ),
    Word(names.NODE_COST, "NodePool", "dollars an hour that a node costs beside its instance, for that policy"),
    Word(
        names.REGISTRATION_HOOK,
        "NodeClaim, from the NodePool's template",
        "who must agree before a node counts as registered; taken off by that one",
    ),
    Word(
        names.MOVE,
        "Deployment, Namespace",
        "`restart`: a Deployment of one replica is moved by a roll-out; `evict`: as Karpenter does it; `hold`: its "
        "pods stay ([one replica](../guides/moves.md#one-replica-without-downtime))",
    ),
)

NOTES_OF_DOVETAIL: Final = (
    Word(names.OWNER, "NodeClaim", "the workflow that disrupts it; taken off when the disruption is called off"),
    Word(names.PLAN, "NodeClaim", "the plan that it was made by"),
    Word(
        names.REMEMBERED,
        "NodeClaim",
        "memory of one entry, of which each part is there only if it says something: `replacement_for`, the reason of "
        "the disruption that it was made for; `keeps_places`: its pods are nominated for its node "
        "([cost](../cost.md)); `asks_again`: its pods have nowhere else to go, and it asks for what was short a while "
        "ago; `moved_from`: which types its pods were moved away from to save money, and when: no such move is undone "
        "in a day; `roll_out`: what a roll-out wants of its launch: an image of before a change (`stable` or `back`; "
        "`gone`: it was no more), with instance types that ran it, or what its NodeClass makes, and no other target; "
        "`on_demand_since`: since when its instance is no longer covered by its reservation; `called_off`, with "
        f"`{names.REST}`: why the disruption was called off, and by whom; `held`: what holds its drain and since when, "
        "what was said of it (`Notify`, `Ask`, `Force`), until when somebody has asked to wait, and what it is forced "
        "through by when; no deadline of the node; `reboots`: when its instance was rebooted "
        "for a repair within the last day, of which the third is a replacement; `reboot_issued`: when the cloud took "
        "the reboot, until the node is back",
    ),
    Word(names.PLANNED_PODS, "NodeClaim", "the pods that it was made for, so that they get no second node"),
    Word(names.PLANNED_BUFFERS, "NodeClaim", "the buffers that it was made for, with how many of their pods"),
    Word(
        names.LAUNCH_REQUEST,
        "NodeClaim",
        "what was asked of the cloud, so that a retry asks the same and launches nothing twice",
    ),
    Word(names.REST, "NodeClaim", "until when the node is left alone after a disruption that was called off or failed"),
    Word(names.INTERRUPTED, "NodeClaim", "when the cloud announced that it will take the instance"),
    Word(names.ENDED_BECAUSE, "NodeClaim", "why it was deleted, where that was no disruption: for `log` and `status`"),
    Word(
        names.CLUSTER_UID_TAG,
        "NodeClaim; tag of the instance",
        "the UID of the namespace `kube-system`: whose instance it is, where names of clusters repeat",
    ),
    Word(names.CLAIM_UID_TAG, "tag of the instance", "the UID of its NodeClaim"),
    Word(names.LAUNCH_GROUP_TAG, "tag of the instance", "the group that it was launched with, by one call"),
    Word(
        names.LAUNCHES_STOPPED,
        "NodePool",
        "since when and why nothing is launched for it; `dovetail resume --pool NAME` takes it off",
    ),
    Word(names.LAUNCHES_RESUMED, "NodePool", "since when launches count again"),
    Word(
        names.BREAKER,
        "NodePool",
        "memory: replacements that were not ready in time or did not stay so, and what is held for them; nodes that "
        "consolidation took within a day, and that were launched again "
        "([decision 226](../decisions/0226-failed-replacements.md))",
    ),
    Word(
        names.BEGUN,
        "NodePool",
        "memory: when nodes began to leave and why, as far back as a rate of a DisruptionPolicy looks",
    ),
    Word(names.POLICY, "NodeRollout", "the DisruptionPolicy by whose `rollout` it was made"),
    Word(names.MOVED, "the pod template of a Deployment", "`a` or `b`: the other one with each move"),
    Word(
        names.MOVES,
        "Deployment",
        "memory: the move that is under way (the node's UID, what the template said before, the generation, since "
        "when), or that the last one was taken back (the generation, when)",
    ),
    Word(names.UNUSED_LAUNCHES, "NodePool", "memory: the launches of the last hour that came to nothing"),
)


def annotations_page() -> str:
    """The whole page."""
    return f"""# Annotations and tags

Labels, taints, annotations and finalizers of Karpenter's API (`karpenter.sh/…`, `karpenter.k8s.aws/…`) mean here
what they mean
there, `karpenter.sh/do-not-disrupt` first of all. Those of this page are Dovetail's own. Karpenter ignores them.

## That you write

{_shown(WRITTEN_BY_PEOPLE)}

## That Dovetail writes for itself

Leave them as they are: they are how a worker that was killed, or a Temporal that lost its database, is followed by
one that goes on. What is marked memory is JSON, `{{"v":1,"entries":[…]}}`, the oldest first; what cannot be read there
counts as not remembered ([decision 316](../decisions/0316-one-memory.md)).

{_shown(NOTES_OF_DOVETAIL)}
"""


def _shown(words: tuple[Word, ...]) -> str:
    return table(("key", "on", "what it does"), [(code(word.key), word.where, word.does) for word in words])
