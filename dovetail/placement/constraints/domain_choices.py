"""Into which domains may a node go so that this pod can join it?

For pods with spread or (anti-)affinity on any key but the hostname (PLC-174 to PLC-180). Upstream picks at random among
equal domains (PLQ-10) and may pick one in which no instance type is left. Here the answers come in a defined order, by
count and then by name, and the caller takes the first that leaves a type.
"""

from collections.abc import Sequence
from itertools import product
from operator import contains

from dovetail.model.scheduling.requirements import Requirement
from dovetail.placement.constraints.demands import ShapeInPass
from dovetail.placement.constraints.topology_groups import OwnDomainGroup
from dovetail.placement.facts.states import State

Domains = frozenset[str]


def _key_choices(shape: ShapeInPass, key: str, have: Requirement | None) -> list[Domains]:
    """The sets of domains that one key may be pinned to, best first; none: the pod cannot join."""
    wanted = shape.facts.strict.requirements.get(key)
    valid: list[dict[str, int]] = []  # of each spread
    allowed: set[str] | None = None
    single = False
    for group, own in shape.by_key[key]:
        if group.term.kind == "spread":
            valid.append(group.within_skew(wanted, have, own))
            continue
        if group.term.kind == "affinity":
            domains = group.filled_domains(wanted, have)
            if not domains and own and group.may_start(wanted):
                domains = group.known_domains(wanted, have)
                single = True  # PLQ-6: upstream's two random picks are the same here, so the start is one domain
        else:
            domains = group.empty_domains(wanted, have)
        allowed = set(domains) if allowed is None else allowed & set(domains)
    if valid:  # PLC-177, PLQ-8
        found = shape.spread_choices(valid)
        return [frozenset((domain,)) for domain in found if allowed is None or domain in allowed]
    if not allowed:
        return []
    return [frozenset((domain,)) for domain in sorted(allowed)] if single else [frozenset(allowed)]


def _choices(shape: ShapeInPass, key: str, have: Requirement | None) -> list[Domains]:
    """The choices, remembered until the answers of one of the shape's groups change."""
    remembered = (key, id(have))  # requirements of states live as long as the snapshot's index
    found = shape.picks.get(remembered)
    if found is None:
        found = shape.picks[remembered] = _key_choices(shape, key, have)
    return found


def forget_old_picks(shape: ShapeInPass) -> None:
    """Drop what was remembered, if the answers of one of the shape's groups have changed since."""
    version = 0
    for group, _ in shape.domains:
        version += group.version
    if version != shape.picked_at:
        shape.picks.clear()
        shape.options.clear()
        shape.values = None
        shape.picked_at = version


def targets(shape: ShapeInPass, narrowed: State) -> tuple[State, ...]:
    """The states that a draft of this narrowed state could reach, best first; none: topology forbids the pod."""
    if not shape.domains:
        return (narrowed,)
    if shape.lone_spread is not None:
        group, own, wanted = shape.lone_spread
        key = group.term.key
        return narrowed.pin_each(key, group.lowest_within_skew(wanted, narrowed.requirements.get(key), own))
    forget_old_picks(shape)
    choices: list[tuple[str, list[Domains]]] = []
    for key in shape.by_key:
        found = _choices(shape, key, narrowed.requirements.get(key))
        if not found:
            return ()
        choices.append((key, found))
    if len(choices) == 1:
        key, found = choices[0]
        pinned = [narrowed.pin(key, domains) for domains in found]
        return tuple([state for state in pinned if state is not None])
    result: list[State] = []
    for combination in product(*[found for _, found in choices]):
        state: State | None = narrowed
        for (key, _), domains in zip(choices, combination, strict=True):
            state = state.pin(key, domains) if state is not None else None
        if state is not None:
            result.append(state)
    return tuple(result)


def options_of(shape: ShapeInPass, state: State) -> tuple[State, ...]:
    """The states that a draft of this state could reach with such a pod, best first; none: it cannot take one.

    The shape has admitted or rejected this state before.
    """
    settled = shape.settled.get(state)
    if settled is not None:
        values, options = settled
        if shape.lone_spread is not None:
            group, own, wanted = shape.lone_spread
            count = group.counts.get(values[0])
            return options if count is not None and count <= group.most(wanted, own) else ()
        if shape.domains and not all(map(contains, [allowed for _, allowed in node_values(shape)], values)):
            return ()
        return options
    narrowed = shape.open.get(state)
    if narrowed is None:
        return ()
    if shape.lone_spread is not None and len(narrowed) == 1:
        return targets(shape, narrowed[0])
    forget_old_picks(shape)
    found = shape.options.get(state)
    if found is None:
        found = shape.options[state] = tuple([target for each in narrowed for target in targets(shape, each)])
    return found


def node_values(shape: ShapeInPass) -> list[tuple[str, set[str]]]:
    """Per key the values with which an existing node may take the pod, remembered like the choices."""
    forget_old_picks(shape)
    if shape.values is None:
        shape.values = _node_values(shape)
    return shape.values


def _node_values(shape: ShapeInPass) -> list[tuple[str, set[str]]]:
    strict = shape.facts.strict.requirements
    result: list[tuple[str, set[str]]] = []
    for key, groups in shape.by_key.items():
        result.append((key, allowed_domains(groups, strict.get(key))))
    return result


def allowed_domains(groups: Sequence[OwnDomainGroup], wanted: Requirement | None) -> set[str]:
    """The domains of one key in which all of its groups admit the pod."""
    allowed: set[str] | None = None
    for group, own in groups:
        if group.term.kind == "spread":
            domains = set(group.within_skew(wanted, None, own))
        elif group.term.kind == "affinity":
            domains = set(group.filled_domains(wanted, None))
            if own and group.may_start(wanted):
                domains = set(group.known_domains(wanted, None))
        else:
            domains = set(group.empty_domains(wanted, None))
        allowed = domains if allowed is None else allowed & domains
    return allowed or set()
