"""Into which domains may a node go so that this pod can join it?

Asked for every candidate state of a pod with spread or (anti-)affinity, on any key but the hostname (S-174 to S-180).
Upstream picks at random among equals (Q-10) and may have picked a domain in which no instance type is left; here the
answers come in a stated order, by count and then by name, and the caller takes the first that leaves a type.
"""

from collections.abc import Sequence
from itertools import product
from operator import contains

from dovetail.model.requirements import Requirement
from dovetail.placement.cluster.states import State
from dovetail.placement.constraints.topology_groups import DomainGroup
from dovetail.placement.search.kinds import Kin

Domains = frozenset[str]


def _key_choices(kin: Kin, key: str, have: Requirement | None) -> list[Domains]:
    """The sets of domains that one key may be pinned to, in order of preference; none: the pod cannot join."""
    wanted = kin.facts.strict.requirements.get(key)
    valid: list[dict[str, int]] = []  # of each spread
    allowed: set[str] | None = None
    single = False
    for group, own in kin.by_key[key]:
        if group.term.kind == "spread":
            valid.append(group.within_skew(wanted, have, own))
            continue
        if group.term.kind == "affinity":
            domains = group.filled_domains(wanted, have)
            if not domains and own and group.may_start(wanted):
                domains = group.known_domains(wanted, have)
                single = True  # upstream's two random picks fall together here, so that the start is one domain
        else:
            domains = group.empty_domains(wanted, have)
        allowed = set(domains) if allowed is None else allowed & set(domains)
    if valid:  # S-177, Q-8
        found = kin.spread_choices(valid)
        return [frozenset((domain,)) for domain in found if allowed is None or domain in allowed]
    if not allowed:
        return []
    return [frozenset((domain,)) for domain in sorted(allowed)] if single else [frozenset(allowed)]


def _choices(kin: Kin, key: str, have: Requirement | None) -> list[Domains]:
    """What one key may be pinned to; remembered until a group of the kin counts another pod."""
    remembered = (key, id(have))  # requirements of states live as long as the snapshot's index
    found = kin.picks.get(remembered)
    if found is None:
        found = kin.picks[remembered] = _key_choices(kin, key, have)
    return found


def forget_old_picks(kin: Kin) -> None:
    """Called before a try: what was picked before one of the groups changed its answers is out of date."""
    version = 0
    for group, _ in kin.domains:
        version += group.version
    if version != kin.picked_at:
        kin.picks.clear()
        kin.options.clear()
        kin.values = None
        kin.picked_at = version


def targets(kin: Kin, narrowed: State) -> tuple[State, ...]:
    """The states that a claim of this (narrowed) state would go to, best first; none: topology forbids it."""
    if not kin.domains:
        return (narrowed,)
    if kin.lone_spread is not None:
        group, own, wanted = kin.lone_spread
        key = group.term.key
        return narrowed.pin_each(key, group.lowest_within_skew(wanted, narrowed.requirements.get(key), own))
    forget_old_picks(kin)
    choices: list[tuple[str, list[Domains]]] = []
    for key in kin.by_key:
        found = _choices(kin, key, narrowed.requirements.get(key))
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


def options_of(kin: Kin, state: State) -> tuple[State, ...]:
    """The states that a claim of this state would go to with a pod of the kin, best first; none: it cannot take one.

    The kin has been shown the state before.
    """
    settled = kin.settled.get(state)
    if settled is not None:
        values, options = settled
        if kin.lone_spread is not None:
            group, own, wanted = kin.lone_spread
            count = group.counts.get(values[0])
            return options if count is not None and count <= group.most(wanted, own) else ()
        if kin.domains and not all(map(contains, [allowed for _, allowed in node_values(kin)], values)):
            return ()
        return options
    narrowed = kin.open.get(state)
    if narrowed is None:
        return ()
    if kin.lone_spread is not None and len(narrowed) == 1:
        return targets(kin, narrowed[0])
    forget_old_picks(kin)
    found = kin.options.get(state)
    if found is None:
        found = kin.options[state] = tuple([target for each in narrowed for target in targets(kin, each)])
    return found


def node_values(kin: Kin) -> list[tuple[str, set[str]]]:
    """For nodes whose domains are fixed: per key the values with which a node may take the pod; kept like picks."""
    forget_old_picks(kin)
    if kin.values is None:
        kin.values = _node_values(kin)
    return kin.values


def _node_values(kin: Kin) -> list[tuple[str, set[str]]]:
    strict = kin.facts.strict.requirements
    result: list[tuple[str, set[str]]] = []
    for key, groups in kin.by_key.items():
        result.append((key, allowed_domains(groups, strict.get(key))))
    return result


def allowed_domains(groups: Sequence[tuple[DomainGroup, bool]], wanted: Requirement | None) -> set[str]:
    """The domains of one key in which all of its groups would have the pod."""
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
