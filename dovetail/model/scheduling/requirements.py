"""Requirements: which values of a label may a node have?

A requirement is a set of values in one of two shapes, a finite set or the complement of one, with optional inclusive
integer bounds and an optional minimum of distinct values (PLC-33 to PLC-49). A requirement set is a mapping from key to
requirement; an absent key means "anything". Note that "overlaps" (PLC-40), by which upstream decides, is not the same
as "the intersection is not empty".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dovetail.model.names import HOSTNAME
from dovetail.model.pods import Expression
from dovetail.model.scheduling.key_aliases import canonical_key
from dovetail.model.values.digits import MAX_INT, integer, nearest_integer
from dovetail.model.values.remembering import MEGABYTE, remembered

NEGATIVE: Final = frozenset({"NotIn", "DoesNotExist"})
_SHOWN_VALUES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Finite: the values themselves (none: DoesNotExist). Complement: every value but these (none: Exists)."""

    key: str
    complement: bool
    values: frozenset[str] = frozenset()
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @property
    def operator(self) -> str:
        """PLC-38: the operator that this set amounts to."""
        if self.complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    def has(self, value: str) -> bool:
        """PLC-37: whether a node may carry this value."""
        if (value in self.values) is self.complement:
            return False
        return (self.gte is None and self.lte is None) or within(value, self.gte, self.lte)


RequirementSet = Mapping[str, Requirement]


def within(value: str, gte: int | None, lte: int | None) -> bool:
    """PLC-37: with a bound, a value that is no integer is out of bounds."""
    if gte is None and lte is None:
        return True
    number = integer(value)
    return number is not None and (gte is None or number >= gte) and (lte is None or number <= lte)


def _operand(values: tuple[str, ...]) -> int:
    """PLC-34: operands were validated before; one that is no integer counts as 0, an overflow as the nearest one."""
    return (nearest_integer(values[0]) if values else None) or 0


@remembered(8 * MEGABYTE)
def requirement(key: str, operator: str, values: tuple[str, ...] = (), min_values: int | None = None) -> Requirement:
    """PLC-33, PLC-34: the set of values that an expression describes, under the key's canonical name."""
    key = canonical_key(key)
    match operator:
        case "In":
            return Requirement(key=key, complement=False, values=frozenset(values), min_values=min_values)
        case "NotIn":
            return Requirement(key=key, complement=True, values=frozenset(values), min_values=min_values)
        case "Exists":
            return Requirement(key=key, complement=True, min_values=min_values)
        case "Gt":
            bound = _operand(values)
            if bound == MAX_INT:
                return Requirement(key=key, complement=False)
            return Requirement(key=key, complement=True, gte=bound + 1, min_values=min_values)
        case "Lt":
            return Requirement(key=key, complement=True, lte=_operand(values) - 1, min_values=min_values)
        case "Gte":
            return Requirement(key=key, complement=True, gte=_operand(values), min_values=min_values)
        case "Lte":
            return Requirement(key=key, complement=True, lte=_operand(values), min_values=min_values)
    return Requirement(key=key, complement=False, min_values=min_values)  # DoesNotExist


def from_expression(expression: Expression) -> Requirement:
    return requirement(expression.key, expression.operator, expression.values, expression.min_values)


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def intersect(a: Requirement, b: Requirement) -> Requirement:
    """PLC-39: the values that both allow. A minimum of values survives, the larger one."""
    gte, lte = _larger(a.gte, b.gte), _smaller(a.lte, b.lte)
    min_values = _larger(a.min_values, b.min_values)
    if gte is not None and lte is not None and gte > lte:
        return Requirement(key=a.key, complement=False, min_values=min_values)
    if a.complement and b.complement:
        values, complement = a.values | b.values, True
    elif a.complement or b.complement:
        values = b.values - a.values if a.complement else a.values - b.values
        complement = False
    else:
        values, complement = a.values & b.values, False
    if gte is not None or lte is not None:
        values = frozenset(value for value in values if within(value, gte, lte))
    if not complement:
        gte = lte = None
    return Requirement(key=a.key, complement=complement, values=values, gte=gte, lte=lte, min_values=min_values)


def overlaps(a: Requirement, b: Requirement) -> bool:
    """PLC-40: whether some concrete value suits both; two complements always overlap unless their bounds cross."""
    gte, lte = _larger(a.gte, b.gte), _smaller(a.lte, b.lte)
    if gte is not None and lte is not None and gte > lte:
        return False
    if a.complement:
        if b.complement:
            return True
        shared: Iterable[str] = b.values - a.values
    else:
        shared = a.values - b.values if b.complement else a.values & b.values
    if gte is None and lte is None:
        return bool(shared)
    return any(within(value, gte, lte) for value in shared)


def passes(a: Requirement, b: Requirement) -> bool:
    """PLC-42: overlap, except that two negative requirements always agree."""
    return overlaps(a, b) or (a.operator in NEGATIVE and b.operator in NEGATIVE)


def requirement_set(requirements: Iterable[Requirement]) -> dict[str, Requirement]:
    """PLC-41: collected by key; two requirements for one key are intersected."""
    result: dict[str, Requirement] = {}
    for added in requirements:
        present = result.get(added.key)
        result[added.key] = added if present is None else intersect(present, added)
    return result


def from_expressions(expressions: Iterable[Expression]) -> dict[str, Requirement]:
    """The set that a list of expressions spells."""
    return requirement_set([from_expression(expression) for expression in expressions])


def from_labels(labels: Mapping[str, str]) -> dict[str, Requirement]:
    """Each label as a requirement to have exactly that value."""
    return requirement_set([requirement(key, "In", (value,)) for key, value in labels.items()])


def merge(a: RequirementSet, b: RequirementSet) -> dict[str, Requirement]:
    """PLC-41: `a` narrowed by `b`."""
    result = dict(a)
    for key, added in b.items():
        present = result.get(key)
        result[key] = added if present is None else intersect(present, added)
    return result


def conflicts(a: RequirementSet, b: RequirementSet) -> tuple[str, ...]:
    """PLC-42: the keys on which the two sets disagree, sorted; keys of one side only do not matter."""
    if len(b) < len(a):
        return tuple(sorted(key for key, wanted in b.items() if key in a and not passes(a[key], wanted)))
    return tuple(sorted(key for key, present in a.items() if key in b and not passes(present, b[key])))


def narrows(a: RequirementSet, b: RequirementSet) -> bool:
    """Whether `b` allows everything that `a` allows, as far as lists of values show it."""
    for key, wider in b.items():
        own = a.get(key)
        if own == wider:
            continue
        if own is None or own.complement or wider.complement or own.min_values != wider.min_values:
            return False
        if not own.values or not own.values <= wider.values:  # without values it requires the label to be absent
            return False
    return True


def allows_no_more(have: RequirementSet, want: RequirementSet) -> bool:
    """Whether `want` allows everything that `have` allows, whatever their minimal numbers of values are."""
    for key, wanted in want.items():
        own = have.get(key)
        if own is None:
            return False
        both = intersect(own, wanted)
        if (both.complement, both.values, both.gte, both.lte) != (own.complement, own.values, own.gte, own.lte):
            return False
    return True


def undefined(have: RequirementSet, want: RequirementSet, allowed: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """PLC-43: the keys for which `want` needs a value and which `have` does not know, sorted."""
    return tuple(
        sorted(
            key
            for key, wanted in want.items()
            if key not in have and key not in allowed and wanted.operator not in NEGATIVE
        )
    )


def compatible(have: RequirementSet, want: RequirementSet, allowed: frozenset[str] = frozenset()) -> bool:
    """PLC-43: whether `have` can satisfy `want`; the keys in `allowed` may be undefined."""
    for key, wanted in want.items():
        present = have.get(key)
        if present is None:
            if key not in allowed and wanted.operator not in NEGATIVE:
                return False
        elif not passes(present, wanted):
            return False
    return True


def export(item: Requirement) -> list[Expression]:
    """PLC-47: the expressions that a NodeClaim carries for this requirement."""
    entries: list[tuple[str, tuple[str, ...]]] = []
    if item.gte is not None:
        entries.append(("Gte", (str(item.gte),)))
    if item.lte is not None:
        entries.append(("Lte", (str(item.lte),)))
    if not entries:
        entries.append((item.operator, tuple(sorted(item.values))))
    return [Expression(key=item.key, operator=op, values=values, min_values=item.min_values) for op, values in entries]


def export_set(items: RequirementSet) -> tuple[Expression, ...]:
    """A requirement set as expressions, sorted by key and operator, so that equal sets export equally."""
    return tuple(sorted((e for item in items.values() for e in export(item)), key=lambda e: (e.key, e.operator)))


def text(item: Requirement) -> str:
    """PLC-49: how messages print a requirement."""
    result = f"{item.key} {item.operator}"
    if item.operator in ("In", "NotIn"):
        values = sorted(item.values)
        shown = " ".join(values[:_SHOWN_VALUES])
        more = len(values) - _SHOWN_VALUES
        result += f" [{shown} and {more} others]" if more > 0 else f" [{shown}]"
    if item.gte is not None:
        result += f" >={item.gte}"
    if item.lte is not None:
        result += f" <={item.lte}"
    if item.min_values is not None:
        result += f" minValues {item.min_values}"
    return result


def text_of_set(items: RequirementSet) -> str:
    """A requirement set in words, without the hostname."""
    return ", ".join(sorted(text(item) for key, item in items.items() if key != HOSTNAME))


def with_min_values(item: Requirement, min_values: int | None) -> Requirement:
    """The requirement with another minimum of distinct values."""
    return replace(item, min_values=min_values)
