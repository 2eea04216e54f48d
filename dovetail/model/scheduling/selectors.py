"""Does a label selector match?

A missing selector matches nothing here. If it should match everything, the caller must say so (PLC-172).
"""

from collections.abc import Mapping

from dovetail.model.pods import Expression, LabelSelector

SelectorIdentity = frozenset[tuple[str, str, frozenset[str]]]


def expression_matches(expression: Expression, labels: Mapping[str, str]) -> bool:
    """One expression; NotIn and DoesNotExist hold for an absent label."""
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value is not None and value in expression.values
        case "NotIn":
            return value is None or value not in expression.values
        case "Exists":
            return value is not None
    return value is None  # DoesNotExist


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether all expressions match; a selector without any matches everything."""
    return selector is not None and all(expression_matches(e, labels) for e in selector.expressions)


class SelectorByLabel:
    """A selector by the labels that it names, for one that is asked of many pods: ten thousand expressions cost no more
    for each of them than the few labels that a pod has."""

    def __init__(self, selector: LabelSelector | None) -> None:
        self._nothing = selector is None
        self._needed: set[str] = set()
        self._allowed: dict[str, frozenset[str]] = {}
        self._kept_out: dict[str, set[str]] = {}
        self._absent: set[str] = set()
        for expression in selector.expressions if selector is not None else ():
            self._add(expression.key, expression.operator, expression.values)

    def _add(self, key: str, operator: str, values: tuple[str, ...]) -> None:
        match operator:
            case "In":
                self._needed.add(key)
                self._allowed[key] = (
                    self._allowed[key].intersection(values) if key in self._allowed else frozenset(values)
                )
            case "NotIn":
                self._kept_out.setdefault(key, set()).update(values)
            case "Exists":
                self._needed.add(key)
            case _:  # DoesNotExist
                self._absent.add(key)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """The same as the function of that name."""
        if self._nothing or not self._needed <= labels.keys() or not self._absent.isdisjoint(labels):
            return False
        return all(
            (key not in self._allowed or value in self._allowed[key]) and value not in self._kept_out.get(key, ())
            for key, value in labels.items()
        )


def identity(selector: LabelSelector | None) -> SelectorIdentity | None:
    """PLC-169: selectors are compared as sets of expressions."""
    if selector is None:
        return None
    return frozenset((e.key, e.operator, frozenset(e.values)) for e in selector.expressions)
