"""DisruptionPolicies and Freezes: JSON of the API in, dovetail.model out.

None is ever unreadable: one that was left out would hold nothing. An error makes a `fault`, and the object then holds
the NodePools that it applies to; if not even those can be read, it applies to every NodePool.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from math import inf
from typing import Any, Final

from dovetail.adapters.kubernetes_json.parsing import declared
from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS
from dovetail.adapters.kubernetes_json.parsing.fields import conditions
from dovetail.adapters.kubernetes_json.parsing.lenient import Fault, metadata_of, read_or, words_of
from dovetail.adapters.kubernetes_json.parsing.nodes import lasting
from dovetail.adapters.kubernetes_json.parsing.reading import number_of, reading, text_of
from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_alerts, parse_plan, parse_verdict
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_label_selector
from dovetail.api.own.disruption_policy import (
    DisruptionPolicySpec,
    NodePoolSelector,
    PolicyBreaker,
    PolicyDrain,
    PolicyExpiry,
    PolicyHealth,
    PolicyRate,
    PolicyWindow,
)
from dovetail.api.own.freeze import FreezeSpec
from dovetail.api.validation import InvalidSpec, parse_spec
from dovetail.model.nodes import Condition
from dovetail.model.own.breaker_rules import BreakerRule
from dovetail.model.own.drain_rules import DrainRules, Escalation, HookRules, Level
from dovetail.model.own.forms import moment
from dovetail.model.own.gates import GateVerdict
from dovetail.model.own.health import ALERTS, HealthResult, HealthRule, HealthState
from dovetail.model.own.openings import DAYS, Dates, Window, second_of
from dovetail.model.own.policies import Expiry, Freeze, Opening, Policy, PolicyStatus, TakenRate, zone_named
from dovetail.model.own.rates import Rate
from dovetail.model.own.rollouts import (
    RolloutPlan,
)
from dovetail.model.pods import LabelSelector
from dovetail.model.values.durations import parse_seconds
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.quoting import shown
from dovetail.model.values.time import optional_time

SHORTEST: Final = 60.0  # seconds of a rate's period
LONGEST: Final = 7 * 86_400.0
_FORCES_NOTHING: Final[DrainRules | None] = DrainRules(hooks=HookRules(), unread=True)
_HOLDS_EXPIRY: Final[Expiry | None] = Expiry(hard_after=inf)


def parse_policy(raw: ReadOnlyJson) -> Policy:
    with reading("DisruptionPolicy", raw):
        return _policy(raw)


def parse_freeze(raw: ReadOnlyJson) -> Freeze:
    with reading("Freeze", raw):
        return _freeze(raw)


def _policy(raw: ReadOnlyJson) -> Policy:
    spec = raw.get("spec")
    selector = read_or(lambda: _selector(raw), None)
    fault, zone = "", "UTC"
    allow: tuple[Window, ...] = ()
    deny: tuple[Window, ...] = ()
    rates: tuple[Rate, ...] = ()
    rollout: RolloutPlan | None = None
    health: HealthRule | None = None
    breaker: BreakerRule | None = None
    try:
        given = parse_spec(DisruptionPolicySpec, spec)
        zone = _zone(given.time_zone)
        allow, deny = (
            tuple([_window(each, f"spec.{name}[{n}]") for n, each in enumerate(windows or ())])
            for name, windows in (("allow", given.allow), ("deny", given.deny))
        )
        rates = tuple(_rate(each, f"spec.rates[{n}]") for n, each in enumerate(given.rates or ()))
        rollout = None if given.rollout is None else parse_plan(given.rollout)
        health = None if given.health is None else _health(given.health)
        breaker = None if given.breaker is None else _breaker(given.breaker)
    except (InvalidSpec, *RAW_FAULTS) as error:
        fault = words_of(error)
    return Policy(
        **metadata_of(raw["metadata"]),
        selector=selector,
        zone=zone,
        allow=allow,
        deny=deny,
        rates=rates,
        expiry=read_or(lambda: _expiry(raw), _HOLDS_EXPIRY),
        rollout=rollout,
        drain=read_or(lambda: _drain(raw), _FORCES_NOTHING),
        health=health,
        breaker=breaker,
        fault=fault,
        status=replace(
            read_or(lambda: _status(raw.get("status") or {}), PolicyStatus()),
            health=_remembered(raw),
            alerts=read_or(lambda: _alerts((raw.get("status") or {}).get("alerts")), None),
        ),
    )


def _freeze(raw: ReadOnlyJson) -> Freeze:
    """If it is not understood, its end is used if that can be read."""
    spec = raw.get("spec") or {}
    said: dict[str, Any]
    try:
        said = declared.fields_in(Freeze, declared.checked(FreezeSpec, spec), "spec")
    except (InvalidSpec, *RAW_FAULTS) as error:
        said = {"fault": words_of(error), "until": read_or(lambda: moment(spec["until"]), None)}
    known = read_or(lambda: conditions((raw.get("status") or {}).get("conditions")), tuple[Condition, ...]())
    return Freeze(**{**said, **declared.metadata_of(raw["metadata"])}, conditions=known)


def _selector(raw: ReadOnlyJson) -> LabelSelector | None:
    """The selector, judged separately: an error in the windows must not close pools that it does not select."""
    given = raw["spec"].get("nodePoolSelector")
    if given is None:
        return None
    return parse_label_selector(parse_spec(NodePoolSelector, given).as_object())


def _expiry(raw: ReadOnlyJson) -> Expiry | None:
    """Also judged separately. If it cannot be read it holds expiry: a slip in a manifest must not delete what waits for
    its replacement."""
    given = raw["spec"].get("expiry")
    if given is None:
        return None
    said = parse_spec(PolicyExpiry, given)
    return Expiry(spread=lasting(said.spread) or 0.0, hard_after=lasting(said.hard_after))


def _drain(raw: ReadOnlyJson) -> DrainRules | None:
    """Also judged separately. If it cannot be read, or nobody can read which NodePools it is for, it forces nothing,
    whatever other policies say, and a hook then holds until a person decides."""
    given = raw["spec"].get("drain")
    if given is None:
        return None
    _selector(raw)
    said = parse_spec(PolicyDrain, given)
    escalation = tuple(
        Escalation(
            after=parse_seconds(each.after),
            do=Level(each.do),
            reasons=frozenset(each.reasons or ()),
            blockers=frozenset(each.blockers or ()),
        )
        for each in said.escalation or ()
    )
    if said.hooks is None:
        return DrainRules(escalation=escalation)
    proceeds = said.hooks.on_timeout == "Proceed"
    return DrainRules(
        escalation=escalation, hooks=HookRules(timeout=parse_seconds(said.hooks.timeout), proceeds=proceeds)
    )


def _zone(name: str) -> str:
    try:
        return zone_named(name)
    except ValueError as error:
        raise Fault(f"spec.timeZone: {error}") from None


def _window(given: PolicyWindow, place: str) -> Window:
    return Window(
        start=second_of(given.from_),
        end=second_of(given.to),
        days=frozenset(DAYS.index(day) for day in given.days or ()),
        dates=tuple([_dates(text, f"{place}.dates[{n}]") for n, text in enumerate(given.dates or ())]),
        reasons=frozenset(given.reasons or ()),
    )


def _rate(given: PolicyRate, place: str) -> Rate:
    per = parse_seconds(given.per)
    if not SHORTEST <= per <= LONGEST:
        raise Fault(f"{place}.per: {shown(given.per)} is not between 1m and 168h")
    return Rate(nodes=given.nodes, per=per, reasons=frozenset(given.reasons or ()))


def _health(given: PolicyHealth) -> HealthRule:
    stable_for = parse_seconds(given.stable_for)
    if stable_for > LONGEST:
        raise Fault(f"spec.health.stableFor: {shown(given.stable_for)} is more than 168h")
    alerts = None if given.alerts is None else parse_alerts(given.alerts, "spec.health.alerts")
    return HealthRule(max_not_ready=given.max_not_ready, stable_for=stable_for, alerts=alerts)


def _breaker(given: PolicyBreaker) -> BreakerRule:
    durations = {"within": given.within, "first": given.first, "longest": given.longest}
    for name, text in durations.items():
        if not SHORTEST <= parse_seconds(text) <= LONGEST:
            raise Fault(f"spec.breaker.{name}: {shown(text)} is not between 1m and 168h")
    within, first, longest = map(parse_seconds, durations.values())
    return BreakerRule(failures=given.failures, within=within, first=first, longest=longest)


def _dates(text: str, place: str) -> Dates:
    first, _, last = text.partition("/")
    found = Dates(*(_date(part, place) for part in (first, last or first)))
    if len(found.first) == 3 and found.last < found.first:
        raise Fault(f"{place}: {shown(text)} ends before it begins")
    return found


def _date(text: str, place: str) -> tuple[int, ...]:
    parts = tuple(map(int, text.split("-")))
    try:
        date(*(2000, *parts)[-3:])  # of every year: 2000 has a 29th of February
    except ValueError:
        raise Fault(f"{place}: {shown(text)} is no day of the calendar") from None
    return parts


def _status(raw: ReadOnlyJson) -> PolicyStatus:
    return PolicyStatus(
        pools=tuple(map(text_of, raw.get("nodePools") or ())),
        openings=tuple(_openings(raw.get("openings") or ())),
        rates=tuple(map(_taken, raw.get("rates") or ())),
        conditions=conditions(raw.get("conditions")),
    )


def _remembered(raw: ReadOnlyJson) -> HealthState | None:
    """Separate from the rest of a status, which may be corrupt while this is not."""
    return _health_state(read_or(lambda: (raw.get("status") or {}).get("health"), None))


def _health_state(raw: ReadOnlyJson | None) -> HealthState | None:
    """An unreadable part counts as a failure, which a further look may end."""
    if not raw:
        return None
    message = read_or(lambda: text_of(raw.get("message") or ""), "")
    since = read_or(lambda: optional_time(raw["since"]), None)
    result = read_or(lambda: HealthResult(raw["state"]), HealthResult.FAILING)
    if since is None:
        return HealthState(result=HealthResult.FAILING, since=0.0, message=message or "a status that cannot be read")
    until = read_or(lambda: optional_time(raw.get("until")), None)
    return HealthState(result=result, since=since, until=until, message=message)


def _alerts(raw: ReadOnlyJson | None) -> GateVerdict | None:
    """An unreadable alert counts as never asked."""
    return None if not raw else parse_verdict({**raw, "name": ALERTS})


def _taken(raw: ReadOnlyJson) -> TakenRate:
    rate, begun, allowed = (number_of(raw[key]) for key in ("rate", "begun", "allowed"))
    until = optional_time(raw.get("until"))
    return TakenRate(pool=text_of(raw["nodePool"]), rate=rate, begun=begun, allowed=allowed, until=until)


def _openings(raw: Any) -> Iterator[Opening]:
    for each in raw:
        yield Opening(
            reason=text_of(each["reason"]),
            open=each["open"] is True,
            until=optional_time(each.get("until")),
            why=text_of(each.get("why") or ""),
        )
