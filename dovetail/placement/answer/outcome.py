"""What is the result of a pass, as a whole or since it was last looked at?

A provisioning round and a simulation get the same kind of answer, a `Placement`. They differ in two things: a
simulation gives reasons only for pods that run today, because pending ones had no place before either (DIS-90); and it
does not trust a node that is still coming up (PLC-219).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dovetail.model.objects.judging import Unjudged
from dovetail.model.objects.pod_rules import is_given_up
from dovetail.model.places.placements import NewNode, Placement, PoolRefusal, RefusedPod
from dovetail.model.pods import Pod
from dovetail.placement.answer.explain import Explainer
from dovetail.placement.answer.finish import Finished, Finisher
from dovetail.placement.search.solve import Pass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pass had come when it was last looked at: new nodes, and pods on each existing node."""

    new: int = 0
    placed: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Pass) -> "Progress":
        return cls(len(run.drafts.made), {bit: len(pods) for bit, pods in run.nodes.placed.items()})


def of_round(run: Pass) -> Placement:
    new, short = _finished(run, Progress())
    explainer = Explainer(run)
    refused = [explainer.explain(refused) for refused in run.refused.values()]
    refused += [_cut(pod, finished, _short_of(finished)) for finished in short for pod in finished.draft.pods]
    return _placement(run, Progress(), new, refused)


def of_simulation(run: Pass, since: Progress) -> Placement:
    """The answer to a simulation, or to one step of it: what happened since `Progress`."""
    new, short = _finished(run, since)
    explainer = Explainer(run)
    refused = [
        RefusedPod(pod=refused.pod, pools=()) if is_given_up(refused.pod) else explainer.explain(refused)
        for refused in run.refused.values()
    ]
    refused += _on_uninitialized(run, since)
    message = "too few distinct values are left for minValues"
    refused += [_cut(pod, finished, message) for finished in short for pod in finished.draft.pods]
    return _placement(run, since, new, refused)


def _placement(run: Pass, since: Progress, new: list[NewNode], refused: list[RefusedPod]) -> Placement:
    nodes, index = run.index.table.nodes, run.index
    return Placement(
        new=tuple(new),
        existing={nodes[bit].name: tuple(pods) for bit, pods in _placed(run, since)},
        refused=tuple(refused),
        ignored=index.ignored,
        empty_pools=tuple(index.empty_pools),
        oversized=tuple((name, template.pool.name) for template in index.templates for name in template.oversized),
        by_zone=run.by_zone,
        complete=run.complete,
        unjudged=index.judging.found,
    )


def _finished(run: Pass, since: Progress) -> tuple[list[NewNode], list[Finished]]:
    """The new nodes in their final order, and those that truncation leaves with too few values: these are given up with
    their pods (PLC-137)."""
    finisher = run.index.kept(Finisher)
    new: list[NewNode] = []
    short: list[Finished] = []
    for number in run.drafts.order.in_order():
        if number < since.new:
            continue
        draft = run.drafts.made[number]
        drivers = run.devices.drivers(number) if run.devices is not None else ()
        finished = run.index.judging.judge(draft.template.pool, "new node", finisher.finish, draft, drivers)
        if isinstance(finished, Unjudged):
            short.append(Finished(node=None, draft=draft, short={}))
        elif finished.node is not None:
            new.append(finished.node)
        else:
            short.append(finished)
    return new, short


def _short_of(finished: Finished) -> str:
    return f"too few values among the types that may be listed: {dict(sorted(finished.short.items()))}"


def _cut(pod: Pod, finished: Finished, conflict: str) -> RefusedPod:
    pool = finished.draft.template.pool.name
    return RefusedPod(pod=pod, pools=(PoolRefusal(pool=pool, reason="min_values", conflict=conflict),))


def _placed(run: Pass, since: Progress) -> Iterator[tuple[int, list[Pod]]]:
    """The existing nodes that pods were placed on, each with those pods."""
    for bit, pods in sorted(run.nodes.placed.items()):
        fresh = pods[since.placed.get(bit, 0) :]
        if fresh:
            yield bit, fresh


def _on_uninitialized(run: Pass, since: Progress) -> Iterator[RefusedPod]:
    """A node that may never come up is no place, unless the pod's own node is leaving anyway (PLC-219, DIS-89)."""
    leaving = {pod.uid for pod in run.index.waiting().leaving}
    for bit, pods in _placed(run, since):
        item = run.index.table.nodes[bit]
        if item.initialized:
            continue
        claim = item.claim.name if item.claim else ""
        conflict = f"would schedule against uninitialized nodeclaim/{claim}, node/{item.node_name}"
        refusal = PoolRefusal(pool=item.pool, reason="uninitialized_node", conflict=conflict)
        yield from (RefusedPod(pod=pod, pools=(refusal,)) for pod in pods if pod.uid not in leaving)
