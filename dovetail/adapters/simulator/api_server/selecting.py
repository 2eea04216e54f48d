"""Whether labels satisfy a selector or an expression, and whether a taint is tolerated.

Written apart from the product's engine: a world that judged placements with the code under test would agree with its
mistakes.
"""

from collections.abc import Iterable, Mapping

from dovetail.model.values.json import ReadOnlyJson


def satisfies(labels: Mapping[str, str], key: str, operator: str, values: Iterable[str]) -> bool:
    value, wanted = labels.get(key), list(values)
    match operator:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" | "Gte" | "Lte":
            return _compares(value, operator, wanted)
        case _:
            return False


def _compares(value: str | None, operator: str, wanted: list[str]) -> bool:
    if value is None or len(wanted) != 1:
        return False
    try:
        have, bound = int(value), int(wanted[0])
    except ValueError:
        return False
    return {"Gt": have > bound, "Lt": have < bound, "Gte": have >= bound, "Lte": have <= bound}[operator]


def all_satisfied(labels: Mapping[str, str], expressions: Iterable[ReadOnlyJson]) -> bool:
    return all(satisfies(labels, e.get("key", ""), e.get("operator", ""), e.get("values") or ()) for e in expressions)


def selected(selector: ReadOnlyJson | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects labels: none at all selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted: ReadOnlyJson = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all_satisfied(
        labels, selector.get("matchExpressions") or ()
    )


def tolerated(taint: ReadOnlyJson, tolerations: Iterable[ReadOnlyJson]) -> bool:
    return any(_tolerates(t, taint) for t in tolerations)


def _tolerates(toleration: ReadOnlyJson, taint: ReadOnlyJson) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("operator") == "Exists":
        return not toleration.get("key") or toleration["key"] == taint.get("key")
    return toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")
