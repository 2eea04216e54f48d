"""Why was this pod not placed?

Asked at the end of a pass, once per demand, so the answer may take its time. Since a pass ends after a round without
success, what is true at its end was true when the pod was last tried. For each pool in order, the first check that
fails is the reason (PLC-150 to PLC-157); if no types were left, so are the criteria that excluded them (PLC-124).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import le
from typing import NamedTuple

from dovetail.model.names import HOSTNAME
from dovetail.model.objects.judging import Unjudged
from dovetail.model.places.placements import EmptyPool, PoolRefusal, Reason, RefusedPod
from dovetail.model.pods import Pod
from dovetail.model.pools import InstanceType
from dovetail.model.scheduling.requirements import (
    Requirement,
    conflicts,
    from_expressions,
    merge,
    text,
    text_of_set,
    undefined,
)
from dovetail.model.scheduling.taints import untolerated
from dovetail.model.values.resources import Resources, format_amount
from dovetail.placement.answer.remedies import beside, remedy
from dovetail.placement.closed_offerings import Withheld, withheld, withheld_words
from dovetail.placement.constraints.demands import Demand
from dovetail.placement.constraints.domain_choices import targets
from dovetail.placement.constraints.topology_groups import DomainGroup, HostGroup
from dovetail.placement.facts.claim_rules import POD_RESOURCES, TOO_LARGE
from dovetail.placement.facts.masks import bits
from dovetail.placement.facts.states import Needs, State
from dovetail.placement.facts.templates import Template, template_requirements
from dovetail.placement.facts.type_table import allocatable
from dovetail.placement.min_values import shortest_prefix
from dovetail.placement.search.solve import Pass, Refused

_BY_GROUP: dict[str, Reason] = {
    "spread": "topology_spread",
    "affinity": "pod_affinity",
    "anti": "pod_anti_affinity",
    "inverse": "pod_anti_affinity",
}


class _Why(NamedTuple):
    """Why one pool does not take a pod: a reason, the same in words, a closer reason if there is one, and the
    DaemonSets without which it would take the pod."""

    reason: Reason
    conflict: str
    within: Reason | None = None
    daemon_sets: tuple[str, ...] = ()


class Explainer:
    def __init__(self, run: Pass) -> None:
        self._run = run
        # By the requests too: what exists nowhere counts as one resource in a demand.
        self._known: dict[tuple[Demand, int], tuple[tuple[PoolRefusal, ...], dict[str, int]]] = {}
        self._withheld_of: dict[State, list[Withheld]] = {}
        self._empty_words: dict[tuple[str, frozenset[Requirement]], str] = {}  # by pool and what a pod adds to it

    def explain(self, refused: Refused) -> RefusedPod:
        """Everything known about one refused pod, or that it cannot be judged."""
        found = self._run.index.judging.judge(refused.pod, "explanation", self._explained, refused)
        return _plain(refused.pod, "not_judged", found.message) if isinstance(found, Unjudged) else found

    def _explained(self, refused: Refused) -> RefusedPod:
        match refused.reason:
            case "not_judged":
                return _plain(refused.pod, "not_judged", refused.fault)
            case "dra":
                return _plain(refused.pod, "dra", "resource claims are ignored (IGNORE_DRA_REQUESTS)")
            case "devices":
                return _plain(refused.pod, "devices", refused.fault)
            case "volumes":
                return _plain(refused.pod, "volume_lookup", "something its volumes refer to does not exist")
            case "not_reached":
                return replace(_plain(refused.pod, "not_reached", "the time was up"), begun=refused.begun)
        demand = refused.demand
        assert demand is not None
        key = demand, id(refused.pod.requests)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (tuple(self._pools(demand, refused.pod)), self._existing(demand))
        return RefusedPod(pod=refused.pod, pools=known[0], existing=known[1])

    def _existing(self, demand: Demand) -> dict[str, int]:
        """The number of existing nodes that failed each check, in the order of the checks."""
        nodes, facts = self._run.nodes, demand.shape.facts
        left = nodes.active
        found: dict[str, int] = {}
        checks: list[tuple[str, int]] = [
            ("taints", nodes.table.tolerating(facts.pod_shape.tolerations)),
            ("it_fits", nodes.table.holding(demand.wanted) & ~demand.node_dead),
            ("requirements", nodes.table.satisfying(facts.needs.requirements)),
        ]
        if (needs := facts.devices) is not None and nodes.devices is not None:
            fitting = sum(1 << bit for bit in bits(left) if nodes.devices.fits_node(needs, bit))
            checks.append(("devices", fitting))
        for reason, passing in checks:
            if failing := (left & ~passing).bit_count():
                found[reason] = failing
            left &= passing
        if left:
            found["topology_spread"] = left.bit_count()
        return found

    def _pools(self, demand: Demand, pod: Pod) -> Iterator[PoolRefusal]:
        for held in self._run.index.held_pools:
            yield PoolRefusal(pool=held.pool, reason=held.reason, conflict=held.says)
        empty = {each.pool: words for each in self._run.index.empty_pools if (words := self._empty(demand, each))}
        if not self._run.index.templates and not self._run.index.held_pools:
            yield _nothing_left("", *dict.fromkeys(empty.values()))
        for template in self._run.index.templates:
            if template.pool.name in self._run.drafts.closed:
                continue
            why = self._template(demand, pod, template)
            advice = remedy(why.reason, pod.requests, template)
            yield PoolRefusal(
                pool=template.pool.name,
                reason=why.reason,
                conflict=why.conflict,
                remedy=beside(why.daemon_sets) or advice,
                within=why.within,
                daemon_sets=why.daemon_sets,
            )
            if why.reason == "reserved_offering":
                return  # PLC-160: no lighter pool is tried
        if self._run.index.templates:
            yield from (_nothing_left(pool, words) for pool, words in empty.items())

    def _empty(self, demand: Demand, empty: EmptyPool) -> str:
        """Why a pool that has nothing now has nothing for such a pod; empty if it would not take the pod anyway."""
        index, facts = self._run.index, demand.shape.facts
        pool = index.snapshot.pools[empty.pool]
        have, needs = template_requirements(pool), facts.needs.requirements
        if untolerated(pool.template.taints, facts.pod_shape.tolerations) is not None:
            return ""
        if undefined(have, needs, index.settings.well_known) or conflicts(have, needs):
            return ""
        asked = empty.pool, frozenset(needs.values())
        if asked not in self._empty_words:
            types = ((item.source, item.requirements) for item in index.types_of_empty.get(empty.pool, ()))
            found = withheld_words(withheld(types, merge(have, needs), index.snapshot.now), index.snapshot.now)
            self._empty_words[asked] = "; ".join(filter(None, (empty.too_few, found)))
        return self._empty_words[asked]

    def _template(self, demand: Demand, pod: Pod, template: Template) -> _Why:
        drafts, facts = self._run.drafts, demand.shape.facts
        if drafts.limits.nodes_exhausted(template):
            return _Why("node_limits", "node limits have been exhausted for nodepool")
        rows = drafts.limits.rows(template)
        if not rows:
            words = self._withheld_words(demand, template, template.start.narrow(facts.needs) or template.start)
            return _Why(
                "limits", "; ".join(filter(None, ("all available instance types exceed limits for nodepool", words)))
            )
        taint = untolerated(template.pool.template.taints, facts.pod_shape.tolerations)
        if taint is not None:
            return _Why("taints", f"did not tolerate taint {taint.key}={taint.value}:{taint.effect}")
        if template.lacks_company_of(facts.pod_shape):
            if (later := template.later) is not None and not later.lacks_company_of(facts.pod_shape):
                words = self._withheld_words(demand, template, template.start)
                return _Why("pod_affinity", f"no type on which the DaemonSet runs is to be had: {words}")
            return _Why("pod_affinity", "a DaemonSet whose pod it must be beside does not run on nodes of the pool")
        narrowed = template.start.narrow(facts.needs)
        if narrowed is None:
            return _Why(*self._requirements(demand, template))
        found = _Why("volume_requirements", "no node of the pool can be where its volumes are")
        for alternative in facts.alternatives:
            state = narrowed.narrow(alternative)
            if state is None:
                found = self._volumes(narrowed, alternative)
            else:
                found = self._state(demand, pod, template, state, rows)
        return found

    def _volumes(self, have: State, needs: Needs) -> _Why:
        """Why no node of the pool reaches the volumes: it does not know a label they ask for, or has other values."""
        known = self._run.index.settings.well_known | {HOSTNAME}  # a new node has a name, though it is not known yet
        if missing := undefined(have.requirements, needs.requirements, known):
            return _Why("volume_requirements", _unknown(missing[0]), "undefined_label")
        at = text(needs.hostname[HOSTNAME]) if needs.hostname else text_of_set(needs.requirements)
        return _Why("volume_requirements", needs.fault or at)

    def _requirements(self, demand: Demand, template: Template) -> tuple[Reason, str]:
        wanted = demand.shape.facts.needs
        needs, have = wanted.requirements, template.start.requirements
        if missing := undefined(have, needs, self._run.index.settings.well_known):
            return "undefined_label", _unknown(missing[0])
        keys = conflicts(have, needs)
        disagreeing = "; ".join(f"{text(needs[key])} not in {text(have[key])}" for key in keys)
        unnamed = "the hostname of a new node is not known before it exists" if wanted.hostname else TOO_LARGE
        return "requirements", disagreeing or wanted.fault or unnamed

    def _state(self, demand: Demand, pod: Pod, template: Template, state: State, rows: int) -> _Why:
        for host, own in demand.shape.hosts:
            if not host.accepts_new(own):
                return _Why(_BY_GROUP[host.term.kind], _of_group(host))
        options = targets(demand.shape, state)
        if not options:
            return _Why(*self._domains(demand, state))
        for option in options:
            found = self._types(demand, pod, template, option, rows)
            if found is not None:
                return found
        return _Why("requirements", text_of_set(state.requirements))

    def _domains(self, demand: Demand, state: State) -> tuple[Reason, str]:
        strict = demand.shape.facts.strict.requirements
        for group, own in demand.shape.domains:
            key = group.term.key
            wanted, have = strict.get(key), state.requirements.get(key)
            if group.term.kind == "spread":
                fails = not group.within_skew(wanted, have, own)
            elif group.term.kind == "affinity":
                may_start = own and group.may_start(wanted) and bool(group.known_domains(wanted, have))
                fails = not group.filled_domains(wanted, have) and not may_start
            else:
                fails = not group.empty_domains(wanted, have)
            if fails:
                return _BY_GROUP[group.term.kind], _of_group(group)
        well_known = self._run.index.settings.well_known
        for group, _ in demand.shape.domains:
            if group.term.key not in state.requirements and group.term.key not in well_known:
                return "undefined_label", _unknown(group.term.key)
        return "requirements", "its topology constraints agree on no domain"

    def _types(self, demand: Demand, pod: Pod, template: Template, state: State, rows: int) -> _Why | None:
        drafts = self._run.drafts
        holding = template.fit.holding(demand.wanted, rows)
        if pod.shape.host_ports:
            holding = drafts.free_ports(pod, template, [], holding)
            rows = drafts.free_ports(pod, template, [], rows)
        left = holding & state.rows & template.fit.whole
        if not left and holding & state.rows:
            crowded = holding & state.rows & drafts.crowded(pod, template)
            left = crowded if crowded and not drafts.has_room_beside_all(demand, pod) else 0
            holding = holding if left else holding & template.fit.whole
        if left and (needs := demand.shape.facts.devices) is not None and drafts.devices is not None:
            if not drafts.with_devices(needs, template, left):
                return _Why("devices", drafts.devices.why_no_type(needs, template, left))
            left = drafts.with_devices(needs, template, left)
        if left:
            begun = drafts.begin(template, state, left)
            if begun is None:
                return _Why("reserved_offering", "suitable reserved capacity exists but cannot be had now")
            if isinstance(begun, Mapping):
                wanted = ", ".join(f"{key} has {count} of {state.minima[key]}" for key, count in sorted(begun.items()))
                beside = "" if left == holding & state.rows else " of what has room beside all DaemonSets"
                words = f"minValues requirement is not met: {wanted}{beside}"
                return _Why(
                    "min_values", "; ".join(filter(None, (words, self._missing(demand, template, state, left))))
                )
            return None
        awaits = drafts.awaits(demand, pod, template)
        daemon_sets = () if awaits else template.fit.crowding(demand.wanted, rows & state.rows)
        reason, words = self._criteria(demand, template, state, rows, holding)
        reason = "it_offering" if awaits else reason
        return _Why(reason, f"{words}, resources={_amounts(pod.requests)}", daemon_sets=daemon_sets)

    def _missing(self, demand: Demand, template: Template, state: State, rows: int) -> str:
        """What would meet minValues beside these rows if it were to be had."""
        found = self._withheld(demand, template, state)
        every = [template.table.types[number].requirements for number in template.table.types_in(rows)]
        every += [from_expressions(each.item.requirements) for each in found]
        listed = self._run.index.settings.profile.minimum_counts_listed
        short = shortest_prefix(every, state.requirements, listed)[1]
        return "" if short else withheld_words(found, self._run.index.snapshot.now)

    def _withheld(self, demand: Demand, template: Template, state: State) -> list[Withheld]:
        """What suits and is within the limits, but is not to be had; what is not for good only if it would hold the
        pod, which anybody would have to change."""
        if state not in self._withheld_of:
            types = (
                (item.source, item.requirements)
                for item in template.table.types
                if self._run.drafts.limits.admits(template, item.source)
            )
            self._withheld_of[state] = withheld(types, state.requirements, self._run.index.snapshot.now)
        found = self._withheld_of[state]
        return [each for each in found if not each.is_for_good or self._holds(demand, template, each.item)]

    def _withheld_words(self, demand: Demand, template: Template, state: State) -> str:
        return withheld_words(self._withheld(demand, template, state), self._run.index.snapshot.now)

    @staticmethod
    def _holds(demand: Demand, template: Template, item: InstanceType) -> bool:
        return all(map(le, demand.wanted, template.table.dimensions.of(allocatable(item))))

    def _criteria(
        self, demand: Demand, template: Template, state: State, rows: int, holding: int
    ) -> tuple[Reason, str]:
        """The criteria that excluded every type, alone or together (PLC-124). `holding`: the rows that hold the pod."""
        table = template.table
        suiting = rows & table.overlapping(state.requirements)
        offered = rows & table.offered(state.requirements)
        fitting = holding & offered  # room counts only together with a suitable offering
        words = f"requirements={text_of_set(state.requirements)}"
        found = self._withheld(demand, template, state)
        words = "; ".join(filter(None, (withheld_words(found, self._run.index.snapshot.now), words)))
        if any((each.is_for_good or not suiting) and self._holds(demand, template, each.item) for each in found):
            return "it_offering", words  # types without an offering have no rows: only that keeps the pod from them
        none = {
            name for name, mask in (("requirements", suiting), ("fits", fitting), ("offering", offered)) if not mask
        }
        if none:
            return _ALONE[frozenset(none)], words
        pairs: list[tuple[int, Reason]] = [
            (suiting & fitting, "it_pair_requirements_fits"),
            (fitting & offered, "it_pair_fits_offering"),
            (suiting & offered, "it_pair_requirements_offering"),
        ]
        for both, reason in pairs:
            if both:
                return reason, words
        return "it_tuple", words


_ALONE: dict[frozenset[str], Reason] = {
    frozenset({"requirements"}): "it_requirements",
    frozenset({"fits"}): "it_fits",
    frozenset({"offering"}): "it_offering",
    frozenset({"requirements", "fits"}): "it_requirements_fits",
    frozenset({"requirements", "offering"}): "it_requirements_offering",
    frozenset({"fits", "offering"}): "it_fits_offering",
    frozenset({"requirements", "fits", "offering"}): "it_requirements_fits_offering",
}


def _nothing_left(pool: str, *why: str) -> PoolRefusal:
    words = "; ".join(("nodepool requirements filtered out all available instance types", *why))
    return PoolRefusal(pool=pool, reason="no_nodepool_instance_types", conflict=words)


def _plain(pod: Pod, reason: Reason, conflict: str) -> RefusedPod:
    return RefusedPod(pod=pod, pools=(PoolRefusal(pool="", reason=reason, conflict=conflict),))


def _amounts(requests: Resources) -> str:
    asked = [f'"{name}":"{format_amount(name, amount)}"' for name, amount in sorted(requests.items()) if amount]
    return f"{{{','.join(asked[:POD_RESOURCES])}}}"


def _unknown(label: str) -> str:
    return f'label "{label}" does not have known values'


def _of_group(group: DomainGroup | HostGroup) -> str:
    term = group.term
    where = "" if isinstance(group, HostGroup) else f", counts {dict(sorted(group.counts.items()))}"
    skew = f", maxSkew {term.max_skew}" if term.kind == "spread" else ""
    return f"{_BY_GROUP[term.kind]} on {term.key}{skew}{where}"
