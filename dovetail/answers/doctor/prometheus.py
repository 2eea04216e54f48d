"""Can roll-outs and policies get their answers from Prometheus?"""

from collections.abc import Iterator
from typing import Final

from dovetail.activities.upkeep.time_rules import questions_of
from dovetail.answers.doctor.findings import Check, failed, fine, warned
from dovetail.answers.wording import plural, shown
from dovetail.model.own.gates import GateResult
from dovetail.model.own.rollouts import BEGUN
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import Failure
from dovetail.wiring.world import World

NAME: Final = "Prometheus"
_SHOWN: Final = 3
_ADVICE: Final = "see DOVETAIL_PROMETHEUS_URL of the workers, the token and the network; until then it holds what asks"


async def prometheus_check(world: World, snapshot: Snapshot) -> tuple[Check, ...]:
    """No check if nothing asks Prometheus. The answers that workers got are in the objects; if the settings of this
    process name a Prometheus too, it is asked."""
    number, unknown = len(questions_of(snapshot)), list(_unknown(snapshot))
    if world.metrics is None and not number:
        return ()
    if unknown:
        return (failed(NAME, shown(unknown, _SHOWN, "; "), _ADVICE),)
    words = f"{plural(number, 'question')} of roll-outs and policies" if number else "nobody asks anything"
    if world.metrics is None:
        return (fine(NAME, f"{words}, which workers have been answered"),)
    try:
        await world.metrics.ask("vector(1)")
    except Failure as failure:
        return ((failed if number else warned)(NAME, str(failure), _ADVICE),)
    return (fine(NAME, f"it answers; {words}"),)


def _unknown(snapshot: Snapshot) -> Iterator[str]:
    for policy in snapshot.policies.values():
        blind = policy.health.why_blind(policy.status.alerts, snapshot.now) if policy.health is not None else ""
        if blind:
            yield f"DisruptionPolicy {policy.name}: {blind}"
    for rollout in snapshot.rollouts.values():
        known = {each.name: each for each in rollout.status.asked}
        for gate in rollout.gates if rollout.status.state in BEGUN else ():
            said = known.get(gate.name)
            why = gate.why_not(said, snapshot.now)
            if why and (said is None or said.result != GateResult.FAILING):
                yield f"NodeRollout {rollout.name}: {why}"
