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


def identity(selector: LabelSelector | None) -> SelectorIdentity | None:
    """PLC-169: selectors are compared as sets of expressions."""
    if selector is None:
        return None
    return frozenset((e.key, e.operator, frozenset(e.values)) for e in selector.expressions)
