"""How should pods spread that have no spread constraint of their own?

Used if the cluster is configured with default constraints (PLC-56 to PLC-58). These carry no selector: it is deduced
from the services and the controller of the pod. If nothing can be deduced, no constraint applies.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dovetail.model.objects.workloads import SelectorSource
from dovetail.model.pods import Expression, LabelSelector, Owner, Pod, PodShape, controller_of
from dovetail.model.scheduling.selectors import matches
from dovetail.model.snapshot import Snapshot
from dovetail.placement.settings import PlacementSettings


class DefaultSpread:
    """The default constraints, and what their selectors are deduced from, indexed once per snapshot."""

    def __init__(self, snapshot: Snapshot, settings: PlacementSettings) -> None:
        self.constraints = settings.default_spread
        self._services: dict[str, list[SelectorSource]] = {}
        self._controllers: dict[tuple[str, str, str], SelectorSource] = {}
        self._known: dict[tuple[PodShape, str], PodShape] = {}
        if self.constraints:
            self._index(snapshot.selector_sources.values())

    def _index(self, sources: Iterable[SelectorSource]) -> None:
        for source in sorted(sources, key=lambda item: (item.namespace, item.name)):
            if source.kind == "Service":
                self._services.setdefault(source.namespace, []).append(source)
            else:
                self._controllers[source.namespace, source.kind, source.name] = source

    def _deduced(self, namespace: str, labels: Mapping[str, str], owner: Owner | None) -> LabelSelector | None:
        equal: dict[str, str] = {}
        for service in self._services.get(namespace, ()):
            if service.selector is not None and matches(service.selector, labels):
                equal.update({e.key: e.values[0] for e in service.selector.expressions if e.values})
        further: tuple[Expression, ...] = ()
        found = None if owner is None else self._controllers.get((namespace, owner.kind, owner.name))
        if found is not None and found.selector is not None:
            if found.kind == "ReplicationController":
                equal.update({e.key: e.values[0] for e in found.selector.expressions if e.values})
            else:
                further = found.selector.expressions
        services = tuple(Expression(key=key, operator="In", values=(equal[key],)) for key in sorted(equal))
        return LabelSelector(expressions=(*services, *further)) if services or further else None

    def shape_of(self, pod: Pod) -> PodShape:
        """The pod's shape, with the default constraints if it has none of its own."""
        if not self.constraints or pod.shape.spread:
            return pod.shape
        owner = controller_of(pod.owners)
        key = (pod.shape, f"{owner.kind}/{owner.name}" if owner else "")
        known = self._known.get(key)
        if known is None:
            selector = self._deduced(pod.namespace, pod.shape.labels, owner)
            known = pod.shape
            if selector is not None:
                known = replace(pod.shape, spread=tuple(replace(c, selector=selector) for c in self.constraints))
            self._known[key] = known
        return known
