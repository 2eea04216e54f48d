"""disruption-decisions, disruption-decisions-random: candidates, budgets, commands and Events per method.

Run under the profile KARPENTER, which repeats Karpenter's answers where ours differ.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from acceptance.karpenter import KARPENTER
from acceptance.vectors.disruption_world import WELL_KNOWN, changed, snapshot
from dovetail.disruption.choose import METHODS, own_notices, screening_notices
from dovetail.disruption.commands import Command
from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.nodes.costs import legacy_cost
from dovetail.disruption.plan import plan_of
from dovetail.disruption.revalidate import Invalid, SecondLook, look_again
from dovetail.disruption.rounds import Attempt, Method, Round, run
from dovetail.disruption.settings import DisruptionSettings
from dovetail.model import names
from dovetail.model.reasons.disruption_reasons import Invalidity
from dovetail.model.scheduling.requirements import Requirement, text
from dovetail.model.scheduling.requirements import requirement as from_operator
from dovetail.model.snapshot import Snapshot
from dovetail.notices.notice import Notice

TOLERANCE = 1e-9
WAIT = 15.0


def settings_of(given: dict[str, Any]) -> DisruptionSettings:
    """The settings of one case."""
    gates = given.get("featureGates") or {}
    return DisruptionSettings(
        spot_to_spot=bool(gates.get("SpotToSpotConsolidation")),
        reserved_capacity=gates.get("ReservedCapacity", True),
        min_values_policy=given.get("minValuesPolicy") or "Strict",
        preference_policy=given.get("preferencePolicy") or "Respect",
        profile=replace(KARPENTER, weighs_every_claim=bool(given.get("trackedCost"))),
        well_known=WELL_KNOWN,
    )


def decisions(case: dict[str, Any]) -> str | None:
    """Every method, each alone on the same cluster."""
    given, expected = case["input"], case["expected"]
    settings, world = settings_of(given), snapshot(given)
    round_ = Round(world, settings)
    for kind, eventual in (("graceful", False), ("eventual", True)):
        ours = sorted(c.name for c in round_.screening.candidates(eventual))
        if ours != expected["eligible"][kind]:
            return f"eligible {kind}: {ours} is not {expected['eligible'][kind]}"
    for method in METHODS:
        if method.name not in expected:
            continue
        wanted = expected[method.name]
        found = _method(given, Round(world, settings), method)
        differences = [_difference(found, option) for option in wanted.get("anyOf", [wanted])]
        if all(differences):
            return f"{method.name}: {differences[0]}"
    missing = {"emptiness", "staticDrift", "drift", "multi", "single"} - {m.name for m in METHODS}
    return f"no method for {sorted(missing)}" if missing else None


def _method(given: dict[str, Any], round_: Round, method: Method) -> dict[str, Any]:
    """What our method makes of the case, in the form of the recording."""
    done = run(method, round_)
    commands, second = done.found.commands, None
    said = (screening_notices(round_, method.reason.is_eventual), own_notices(round_, done), round_.simulator.notices)
    events = [notice for notices in said for notice in notices]
    if "duringWait" in given and commands and method.reason.waits:
        later = changed(round_.snapshot, given["duringWait"], WAIT)
        commands, second = _after_wait(later, round_.settings, done)
        events.extend(second.notices)
    return {
        "candidates": {c.name: _costs(c, round_.fleet.now) for c in done.candidates},
        "budgets": {pool: a.left for pool, a in done.allowances.items()},
        "commands": [_command(c) for c in commands],
        "validation": None if second is None else _category(second),
        "error": bool(done.found.error),
        "events": {(e.kind, _object(e), e.type, e.reason, _comparable(e.message)) for e in events},
    }


def _costs(candidate: Candidate, now: float) -> tuple[float, float, float]:
    return candidate.price, candidate.cost, legacy_cost(candidate.member.pods, candidate.claim, now)


def _object(notice: Notice) -> str:
    return f"{notice.namespace}/{notice.name}" if notice.namespace else notice.name


def _after_wait(later: Snapshot, settings: DisruptionSettings, done: Attempt) -> tuple[tuple[Command, ...], SecondLook]:
    again = Round(later, settings)
    second = look_again(plan_of(again, done.method, done.found.commands), again)
    if isinstance(second.validity, Invalid):
        return (), second
    kept = {t.claim_uid for command in second.validity.plan.commands for t in command.targets}
    commands = (
        replace(c, candidates=tuple(x for x in c.candidates if x.claim.uid in kept)) for c in done.found.commands
    )
    return tuple(commands), second


def _category(second: SecondLook) -> str:
    return second.validity.reason.value if isinstance(second.validity, Invalid) else "valid"


def _command(command: Command) -> dict[str, Any]:
    return {
        "decision": command.decision,
        "candidates": [(c.name, c.ratio) for c in command.candidates],
        "savings": command.savings,
        "string": command.text,
        "podsOnExistingNodes": {node: sorted(pods) for node, pods in command.moved.items() if pods},
        "replacements": [
            {
                "nodePool": r.pool,
                "instanceTypes": [t.name for t in r.types],
                "capacityTypes": _values(r.requirements.get(names.CAPACITY_TYPE)),
                "zones": _values(r.requirements.get(names.ZONE)),
                "pods": sorted(r.pods),
            }
            for r in command.replacements
        ],
    }


def _values(requirement: Requirement | None) -> list[str] | None:
    """The values that are allowed; None where all are, and the requirement's own words where they cannot be listed."""
    if requirement is None or requirement == from_operator(requirement.key, "Exists"):
        return None
    return [text(requirement)] if requirement.complement else sorted(requirement.values)


def _difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    checks: tuple[Callable[[dict[str, Any], dict[str, Any]], str | None], ...] = (
        _candidates,
        _budgets,
        _events,
        _errors,
        _commands,
    )
    return next((text for check in checks if (text := check(ours, theirs))), None)


def _candidates(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    wanted = {
        c["name"]: (c["price"], c["rescheduleDisruptionCost"], c["legacyDisruptionCost"])
        for c in theirs.get("candidates") or ()
    }
    have = ours["candidates"]
    if have.keys() != wanted.keys():
        return f"candidates {sorted(have)} are not {sorted(wanted)}"
    wrong = {n for n in wanted if any(abs(a - b) > TOLERANCE for a, b in zip(have[n], wanted[n], strict=True))}
    return f"costs of {sorted(wrong)}: {[(have[n], wanted[n]) for n in sorted(wrong)]}" if wrong else None


def _budgets(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    wanted = theirs.get("budgets") or {}
    return None if ours["budgets"] == wanted else f"budgets {ours['budgets']} are not {wanted}"


def _events(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    wanted = {
        (e["kind"], e["object"], e["type"], e["reason"], _comparable(e["message"])) for e in theirs.get("events") or ()
    }
    have = ours["events"]
    if have == wanted:
        return None
    return f"events: too many {sorted(have - wanted)}, missing {sorted(wanted - have)}"


def _comparable(message: str) -> str:
    """Without what quotes the scheduler or a parser; a long list of pods is not compared."""
    if more := re.search(r" and (\d+) other\(s\)$", message):
        return f"Not all pods would schedule, *{more.group()}"
    message = re.sub(r" => .*?(?=$)", "", message)
    return message.split("as a duration:")[0]


def _errors(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    if ours["error"] != bool(theirs.get("error")):
        return f"error {ours['error']} against {theirs.get('error')!r}"
    wanted = _theirs(theirs.get("validation"))
    return None if ours["validation"] == wanted else f"validation {ours['validation']} is not {wanted}"


def _theirs(text: str | None) -> str | None:
    if text is None or text == "valid":
        return text
    if "no longer valid" in text:
        return Invalidity.CHURN.value
    return Invalidity.BUDGET.value if "budgets" in text else Invalidity.SCHEDULING.value


def _commands(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    wanted, have = theirs.get("commands") or [], ours["commands"]
    if len(have) != len(wanted):
        return f"{[c['string'] for c in have]} is not {[c['string'] for c in wanted]}"
    pairs = zip(sorted(have, key=_key), sorted(wanted, key=_key), strict=True)
    return next((text for a, b in pairs if (text := _one_command(a, b))), None)


def _key(command: dict[str, Any]) -> list[str]:
    return sorted(c if isinstance(c, str) else c[0] for c in command["candidates"])


def _one_command(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    if ours["decision"] != theirs["decision"] or _key(ours) != _key(theirs):
        return f"{ours['string']} is not {theirs['string']}"
    ratios = dict(ours["candidates"])
    # Equal ratios may stand in any order.
    pairs = zip(ours["candidates"], theirs["candidates"], strict=True)
    if any(abs(ratio - ratios[name]) > TOLERANCE for (_, ratio), name in pairs):
        return f"order {ours['string']} is not {theirs['string']}"
    if abs(ours["savings"] - (theirs.get("savings") or 0.0)) > TOLERANCE:
        return f"{ours['string']}: savings {ours['savings']} are not {theirs.get('savings')}"
    moved = {n: sorted(p) for n, p in (theirs.get("podsOnExistingNodes") or {}).items() if p}
    if ours["podsOnExistingNodes"] != moved:
        return f"{ours['string']}: pods go to {ours['podsOnExistingNodes']}, not {moved}"
    return _replacements(ours, theirs)


def _replacements(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    have, wanted = ours["replacements"], theirs.get("replacements") or []
    if len(have) != len(wanted):
        return f"{len(have)} replacements, not {len(wanted)}"
    pairs = zip(sorted(have, key=lambda r: r["pods"]), sorted(wanted, key=lambda r: r.get("pods") or []), strict=True)
    for a, b in pairs:
        for key in ("nodePool", "capacityTypes", "zones"):
            if a[key] != b.get(key):
                return f"replacement's {key}: {a[key]} is not {b.get(key)}"
        if sorted(a["pods"]) != sorted(b.get("pods") or ()):
            return f"replacement's pods: {a['pods']} is not {b.get('pods')}"
        if a["instanceTypes"] != (b.get("instanceTypes") or []):
            return f"replacement's types: {a['instanceTypes']} is not {b.get('instanceTypes')}"
    return None


KINDS = {"disruption-decisions": decisions, "disruption-decisions-random": decisions}
