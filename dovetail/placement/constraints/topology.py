"""Which groups bind a pod, and where are the pods that they count?

Counts over the cluster's bound pods are worked out once per snapshot and group (PLC-172). A pass starts from them,
takes off the pods that it moves itself (PLC-165) and then counts its own placements. A group that is first
seen in mid-pass, after a relaxation, starts without the placements made before it; the pass adds them (PLQ-26).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat

from dovetail.model.names import HOSTNAME
from dovetail.model.nodes import Node
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.pod_index import NodePods
from dovetail.model.pods import Pod, PodShape
from dovetail.model.scheduling.requirements import RequirementSet, from_labels
from dovetail.placement.constraints.by_label import ShapesByLabel, TermsByLabel
from dovetail.placement.constraints.topology_groups import (
    DomainGroup,
    Group,
    HostGroup,
    Levels,
    add_counts,
)
from dovetail.placement.constraints.topology_terms import Term, TermBook
from dovetail.placement.facts.node_table import NodeTable
from dovetail.placement.facts.universe import Universe
from dovetail.placement.settings import PlacementSettings


def domain_on(node: Node, key: str) -> str | None:
    """The node's domain; for the hostname, the node's name replaces a missing label (PLC-172)."""
    return node.labels.get(key) or (node.name if key == HOSTNAME else None)


def _shapes(pods: NodePods) -> tuple[tuple[tuple[PodShape, int], ...], tuple[Pod, ...]]:
    """How many pods of each shape run and stay, and those that keep others away; ended pods are left out."""
    there = [pod for pod in pods if pod.phase not in ("Succeeded", "Failed")]
    alike = Counter(pod.shape for pod in there if pod.deleting_since is None)
    return tuple(alike.items()), tuple([pod for pod in there if pod.shape.anti_affinity])


class ClusterCounts:
    """Where the pods of the cluster are. Counted per term when first asked for, and shared by all passes."""

    def __init__(self, nodes: Mapping[str, Node], table: NodeTable, universe: Universe, book: TermBook) -> None:
        self.nodes = nodes
        self.table = table
        self.universe = universe
        self.book = book
        self._bound: dict[str, dict[PodShape, dict[str, int]]] = {}  # namespace -> shape -> node -> pods
        self._by_label: dict[str, ShapesByLabel[dict[str, int]]] = {}  # the same, found by terms
        self._holding: dict[PodShape, dict[str, int]] = {}  # shapes with required anti-affinity -> node -> pods
        self._counts: dict[Term, dict[str, int]] = {}
        self._node_domains: dict[Term, dict[str, int]] = {}
        self._levels: dict[Term, tuple[Levels, int]] = {}
        self._labels: dict[str, RequirementSet] = {}
        self._present_on: dict[str, dict[str, int]] = {}  # key -> domain -> nodes
        self._places: dict[str, Mapping[str, str] | None] = {}  # key -> node -> its domain
        self._by_place: dict[tuple[str, int], Mapping[str, int]] = {}  # key, pods per node -> pods per domain
        self._held: dict[Term, list[Mapping[str, int]]] = {}  # inverse terms of bound pods -> node -> pods
        self.held = TermsByLabel()
        self.daemons: tuple[PodShape, ...] = ()  # whose pods expected on new nodes satisfy affinity (PLQ-66)

    def add_bound(self, on_node: Mapping[str, NodePods], judging: Judging) -> None:
        """Count bound pods, except those that have ended or whose node is gone."""
        holders: list[Pod] = []
        by_shape: dict[PodShape, dict[str, int]] = {}
        for node_name, pods in on_node.items():
            if node_name not in self.nodes:
                continue
            alike, holding = pods.kept(_shapes)
            for pod in holding:
                add_counts(self._holding.setdefault(pod.shape, {}), (node_name,), 1)
                holders.append(pod)
            for shape, number in alike:
                counts = by_shape.get(shape)
                if counts is None:
                    counts = by_shape[shape] = self._bound.setdefault(shape.namespace, {}).setdefault(shape, {})
                counts[node_name] = number
        self._hold(holders, judging)

    def _hold(self, holders: list[Pod], judging: Judging) -> None:
        holders.sort(key=lambda pod: (pod.created, pod.key))  # the first one decides some of a group's traits
        for pod in holders:
            held = judging.judge(pod, "anti-affinity", self.book.repelling, pod.shape)
            if isinstance(held, Unjudged):
                self._holding.pop(pod.shape, None)
            else:
                for term in held:
                    self.held.add(term)
        for shape, on in self._holding.items():
            for term in self.book.repelling(shape):
                self._held.setdefault(term, []).append(on)

    def accepts(self, term: Term, node: Node) -> bool:
        """Whether pods on that node count for the term (PLC-170)."""
        if term.filter is None:
            return True
        labels = self._labels.get(node.name)
        if labels is None:
            labels = self._labels[node.name] = from_labels(node.labels)
        return term.filter.accepts(node.taints, labels)

    def domain(self, term: Term, node_name: str) -> str | None:
        """The domain in which a pod on that node counts for the term; None: it does not count."""
        node = self.nodes.get(node_name)
        if node is None or not self.accepts(term, node):
            return None
        return domain_on(node, term.key)

    def _relevant(self, term: Term) -> Iterable[Mapping[str, int]]:
        if term.kind == "inverse":
            return self._held.get(term, ())
        return [on for namespace in term.namespaces for on in self._bound_in(namespace).listed(term)]

    def _bound_in(self, namespace: str) -> ShapesByLabel[dict[str, int]]:
        found = self._by_label.get(namespace)
        if found is None:
            found = self._by_label[namespace] = ShapesByLabel(self._bound.get(namespace, {}))
        return found

    def counts(self, term: Term) -> dict[str, int]:
        """The bound pods that count, per domain (PLC-172 (ii))."""
        known = self._counts.get(term)
        if known is None:
            known = self._counts[term] = {}
            for on in self._relevant(term):
                counts = self._per_domain(term, on)
                if not known:
                    known.update(counts)
                    continue
                for domain, count in counts.items():
                    known[domain] = known.get(domain, 0) + count
        return known

    def _per_domain(self, term: Term, on: Mapping[str, int]) -> Mapping[str, int]:
        """Pods per domain, from pods per node.

        Terms that count on every node share the result: a cluster has more terms than keys, and each term would
        otherwise look at all nodes again.
        """
        if term.filter is not None:
            filtered: dict[str, int] = {}
            for node_name, count in on.items():
                domain = self.domain(term, node_name)
                if domain is not None:
                    filtered[domain] = filtered.get(domain, 0) + count
            return filtered
        places = self._places_of(term.key)
        if places is None:
            return on
        known = self._by_place.get((term.key, id(on)))
        if known is None:
            found = Counter([places.get(node_name, "") for node_name in on])  # one pod for each node,
            for node_name, count in on.items():
                if count > 1:  # and the others of those that have more than one
                    found[places.get(node_name, "")] += count - 1
            del found[""]
            known = self._by_place[term.key, id(on)] = found
        return known

    def _places_of(self, key: str) -> Mapping[str, str] | None:
        """Each node's domain; None: every node's domain is its own name, as is nearly always so for the hostname."""
        if key not in self._places:
            domains = ((name, domain_on(node, key)) for name, node in self.nodes.items())
            places = {name: domain for name, domain in domains if domain is not None}
            own = len(places) == len(self.nodes) and all(name == domain for name, domain in places.items())
            self._places[key] = None if own else places
        return self._places[key]

    def levels(self, term: Term) -> tuple[Levels, int]:
        """The counts for a term on the hostname, by node; and how many hosts have at least one pod."""
        known = self._levels.get(term)
        if known is None:
            by_hostname = self.table.by_hostname
            filled = self.counts(term)
            bits = self.table.bit_of_hostname
            if bits is None:  # two nodes have the same hostname
                nodes = {bit: n for hostname, n in filled.items() for bit in by_hostname.get(hostname, ())}
            else:
                nodes = dict(zip(map(bits.get, filled, repeat(-1)), filled.values(), strict=True))
                nodes.pop(-1, None)  # hostnames that no staying node has
            known = self._levels[term] = (Levels(nodes), len(filled))
        return known

    def node_domains(self, term: Term) -> dict[str, int]:
        """How many nodes that pods may land on are in each domain (PLC-172 (i))."""
        known = self._node_domains.get(term)
        if known is None and term.filter is None:
            known = self._node_domains[term] = self._present(term.key)
        if known is None:
            known = self._node_domains[term] = {}
            for item in self.table.nodes:
                if item.node is not None and self.accepts(term, item.node):
                    domain = item.node.labels.get(term.key)
                    if domain is not None:
                        known[domain] = known.get(domain, 0) + 1
        return known

    def _present(self, key: str) -> dict[str, int]:
        """How many of all nodes are in each domain of the key."""
        known = self._present_on.get(key)
        if known is None:
            known = self._present_on[key] = {}
            for item in self.table.nodes:
                domain = item.node.labels.get(key) if item.node is not None else None
                if domain is not None:
                    known[domain] = known.get(domain, 0) + 1
        return known

    def terms_held(self, shape: PodShape) -> Sequence[Term]:
        """The inverse terms through which bound pods of this shape are counted."""
        return self.book.repelling(shape) if shape in self._holding else ()


class Topology:
    def __init__(
        self, cluster: ClusterCounts, removed: Sequence[int], moved: Sequence[Pod], settings: PlacementSettings
    ) -> None:
        self.cluster = cluster
        self.book = cluster.book
        self.spread_choices = settings.profile.spread_choices
        self._inverse_know_nodes = settings.profile.inverse_groups_know_nodes
        self.groups: dict[Term, Group] = {}  # ordinary groups, in order of creation
        self.inverse: dict[Term, Group] = {}
        self.generation = 0  # rises with every new group, to show that a remembered list of groups is outdated
        self._removed = [cluster.table.nodes[bit] for bit in removed]
        self._moved, self._moved_held = self._counted_as_bound(moved)
        self._terms = TermsByLabel()  # of the ordinary groups
        self._inverse_terms = TermsByLabel()  # of inverse groups held by pods of this pass, but not by bound ones

    def _counted_as_bound(
        self, pods: Iterable[Pod]
    ) -> tuple[ShapesByLabel[list[Pod]] | None, Mapping[Term, Sequence[Pod]]]:
        """The running pods of this pass: those that ordinary terms count, and for each inverse term its holders."""
        by_shape: dict[PodShape, list[Pod]] = {}
        for pod in pods:
            if pod.node_name and pod.phase not in ("Succeeded", "Failed"):
                by_shape.setdefault(pod.shape, []).append(pod)
        held: dict[Term, list[Pod]] = {}
        for shape, moved in by_shape.items():
            for term in self.cluster.terms_held(shape):
                held.setdefault(term, []).extend(moved)
        staying = {s: [pod for pod in moved if pod.deleting_since is None] for s, moved in by_shape.items()}
        return ShapesByLabel(staying) if staying else None, held

    def _moved_from(self, term: Term) -> list[str]:
        """The domains in which pods of this pass are counted as bound (PLC-165)."""
        if term.kind == "inverse":
            pods: Iterable[Pod] = self._moved_held.get(term, ())
        elif self._moved is None:
            return []
        else:
            pods = chain.from_iterable(self._moved.listed(term))
        domains = (self.cluster.domain(term, pod.node_name) for pod in pods)
        return [domain for domain in domains if domain is not None]

    def _make(self, term: Term) -> Group:
        return self._host_group(term) if term.key == HOSTNAME else self._domain_group(term)

    def _host_group(self, term: Term) -> HostGroup:
        base, filled = self.cluster.levels(term)
        levels = base.copy()
        moved: dict[str, int] = {}
        add_counts(moved, self._moved_from(term), 1)
        for hostname, count in moved.items():
            for bit in self.cluster.table.by_hostname.get(hostname, ()):
                for _ in range(count):
                    levels.remove(bit)
            if self.cluster.counts(term)[hostname] == count:
                filled -= 1
        hosted = term.kind == "affinity" and any(map(term.counts, self.cluster.daemons))
        return HostGroup(term, levels, filled, hosted)

    def _domain_group(self, term: Term) -> DomainGroup:
        counts = dict(self.cluster.counts(term))
        add_counts(counts, self._moved_from(term), -1)
        known = dict.fromkeys(self.cluster.universe.domains(term.key, term.domain_tolerations), 0)
        if term.kind != "inverse" or self._inverse_know_nodes:
            known.update((domain, 0) for domain, nodes in self._node_domains(term).items() if nodes > 0)
        known.update((domain, count) for domain, count in counts.items() if count)
        return DomainGroup(term, known)

    def _node_domains(self, term: Term) -> Mapping[str, int]:
        """How many nodes that stay in this pass are in each domain."""
        present = self.cluster.node_domains(term)
        if self._removed:
            present = dict(present)
            for item in self._removed:
                counted = item.node is not None and self.cluster.accepts(term, item.node)
                domain = item.node.labels.get(term.key) if item.node is not None and counted else None
                if domain is not None:
                    present[domain] -= 1
        return present

    def group(self, term: Term) -> Group:
        """The group of an ordinary term, made if this is the first time."""
        found = self.groups.get(term)
        if found is None:
            found = self.groups[term] = self._make(term)
            self.generation += 1
            self._terms.add(term)
        return found

    def inverse_group(self, term: Term) -> Group:
        found = self.inverse.get(term)
        if found is None:
            found = self.inverse[term] = self._make(term)
        return found

    def hold(self, shape: PodShape) -> None:
        """Pods of this shape keep others away (PLC-181a (ii)); announced for every shape before pods are placed."""
        for term in self.book.repelling(shape):
            self.inverse_group(term)
            if term not in self.cluster.held:
                self._inverse_terms.add(term)  # last: a term without a group would fail for every pod that it counts

    def owned(self, terms: Iterable[Term]) -> list[Group]:
        """The groups of these terms, which bind a pod."""
        return [self.group(term) for term in terms]

    def repelling(self, shape: PodShape) -> list[Group]:
        """The inverse groups that keep a pod of this shape away."""
        terms = (*self.cluster.held.counting(shape), *self._inverse_terms.counting(shape))
        return [self.inverse_group(term) for term in terms]

    def held(self, shape: PodShape) -> list[Group]:
        """The inverse groups through which a pod of this shape keeps others away."""
        return [self.inverse_group(term) for term in self.book.repelling(shape)]

    def counting(self, shape: PodShape) -> list[Group]:
        """The ordinary groups that count a pod of this shape, wherever it lands."""
        return [self.groups[term] for term in self._terms.counting(shape)]
