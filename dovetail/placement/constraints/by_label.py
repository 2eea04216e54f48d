"""Which pods does a term count, and which terms count a pod, without asking each about each?

Anybody may create pods with terms of their own, and the pairs of pods and terms grow with the square of their number.
So both are found by a label that the term's selector asks for, the one that the fewest share. A selector that only
excludes labels is checked against every pod: it may match all of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from dovetail.model.pods import Expression, LabelSelector, PodShape
from dovetail.placement.constraints.topology_terms import Term

T = TypeVar("T")

Label = tuple[str, str | None]  # with any value: None


def _labels_of(expression: Expression) -> tuple[Label, ...]:
    """Labels of which every pod that the expression matches has one; none if it can match pods without a label."""
    if expression.operator == "In":
        return tuple((expression.key, value) for value in dict.fromkeys(expression.values))
    return ((expression.key, None),) if expression.operator == "Exists" else ()


def _fewest(selector: LabelSelector | None, shared: Mapping[Label, list[int]]) -> tuple[Label, ...]:
    """The labels of the selector's expression that the fewest shapes share."""
    choices = [] if selector is None else [labels for e in selector.expressions if (labels := _labels_of(e))]
    return min(choices, key=lambda labels: sum(len(shared.get(label, ())) for label in labels), default=())


class TermsByLabel:
    """Terms in the order in which they were added, found by a pod that they may count."""

    def __init__(self) -> None:
        self._terms: dict[Term, None] = {}
        self._in_order: list[Term] = []
        self._by_label: dict[Label, list[int]] = {}
        self._loose: list[int] = []

    def __contains__(self, term: Term) -> bool:
        return term in self._terms

    def add(self, term: Term) -> None:
        if term in self._terms:
            return
        self._terms[term] = None
        number = len(self._in_order)
        self._in_order.append(term)
        labels = _fewest(term.selector, self._by_label)
        for label in labels:
            self._by_label.setdefault(label, []).append(number)
        if not labels and term.selector is not None:
            self._loose.append(number)

    def counting(self, shape: PodShape) -> list[Term]:
        numbers, by_label = list(self._loose), self._by_label
        for key, value in shape.labels.items():
            numbers += by_label.get((key, value), ())
            numbers += by_label.get((key, None), ())
        numbers.sort()
        return [term for term in map(self._in_order.__getitem__, numbers) if term.counts(shape)]


class ShapesByLabel(Generic[T]):
    """What is known per pod shape, found by a term that lists the shape."""

    def __init__(self, known: Mapping[PodShape, T]) -> None:
        self._known = list(known.items())
        self._by_label: dict[Label, list[int]] | None = None

    def listed(self, term: Term) -> Iterator[T]:
        """The shapes that the term lists, in their order."""
        selector = term.selector
        if selector is None or not selector.expressions:
            found = self._known
        else:
            found = [self._known[number] for number in self._numbers(selector)]
        return (known for shape, known in found if term.lists(shape))

    def _numbers(self, selector: LabelSelector) -> Iterable[int]:
        by_label = self._by_label
        if by_label is None:
            by_label = self._by_label = {}
            for number, (shape, _) in enumerate(self._known):
                for key, value in shape.labels.items():
                    by_label.setdefault((key, value), []).append(number)
                    by_label.setdefault((key, None), []).append(number)
        labels = _fewest(selector, by_label)
        if not labels:
            return range(len(self._known))
        if len(labels) == 1:
            return by_label.get(labels[0], ())
        return sorted(number for label in labels for number in by_label.get(label, ()))
