"""Which instance types suit a requirement set, and which of them hold these pods?

A *row* is a type together with one group of its offerings that have the same capacity (PLC-116), since an offering and
the room for the pods must be found in the same group (PLC-120). Rows are numbered, and a set of them is the bits of an
integer. A type is rejected only for a key on which both the type and the pods have requirements.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from math import inf
from typing import NamedTuple

from dovetail.model.places.reservations import reservation_of
from dovetail.model.pods import Expression
from dovetail.model.pools import InstanceType, Offering
from dovetail.model.scheduling.requirements import (
    Requirement,
    RequirementSet,
    compatible,
    from_expression,
    from_expressions,
    passes,
    requirement_set,
)
from dovetail.model.values.resources import MEMORY, Resources
from dovetail.placement.facts.dimensions import Dimensions
from dovetail.placement.facts.masks import bits

_MOST_KEPT = 8_192  # types, at a few kilobytes each; beyond that all are recompiled, which changes no answer
_DIGITS = bytes.maketrans(b"01", b"\0\1")


class CompiledOffering(NamedTuple):
    """An available offering with its requirements as a set. `reservation`: its id if it is reserved.

    A tuple, because thousands are made for every catalogue and a frozen dataclass takes five times as long.
    """

    requirements: RequirementSet
    price: float
    reservation: str | None
    reservation_capacity: int
    source: Offering


@dataclass(slots=True, kw_only=True, eq=False)
class CompiledType:
    """A type with its requirements as a set and its offerings by what they can hold. Never changed."""

    source: InstanceType
    requirements: RequirementSet
    groups: tuple[tuple[Resources, tuple[CompiledOffering, ...]], ...]  # allocatable, available offerings
    offerings: tuple[CompiledOffering, ...]  # all available ones
    listed: tuple[tuple[str, int], ...]  # reservation ids with their counts, available or not
    overlaid: bool  # whether a node overlay has changed its capacity or a price


class TypeCompiler:
    """Compiles types; equal lists of expressions become one requirement set.

    Results are found by the identity of their source, which is kept with them so that no other object can take its
    place in memory.
    """

    def __init__(self) -> None:
        self._sets: dict[tuple[Expression, ...], RequirementSet] = {}
        self._items: dict[int, tuple[Expression, Requirement]] = {}
        self._types: dict[int, tuple[InstanceType, CompiledType]] = {}
        self._offered: dict[int, tuple[tuple[Expression, ...], RequirementSet, str | None]] = {}
        self._to_come: dict[int, tuple[InstanceType, tuple[CompiledType, ...]]] = {}

    def __len__(self) -> int:
        return len(self._types)

    def _compile_offering(self, expressions: tuple[Expression, ...]) -> tuple[object, RequirementSet, str | None]:
        """What an offering requires, as a set, and its reservation; worked out once per list of expressions."""
        items = self._sets.get(expressions)
        if items is None:
            items = self._sets[expressions] = from_expressions(expressions)
        known = self._offered[id(expressions)] = (expressions, items, reservation_of(items))
        return known

    def _requirements(self, source: InstanceType) -> RequirementSet:
        items, found = self._items, []
        for expression in source.requirements:
            known = items.get(id(expression))
            if known is None:
                known = items[id(expression)] = (expression, from_expression(expression))
            found.append(known[1])
        return requirement_set(found)

    def compile(self, source: InstanceType) -> CompiledType:
        """The compiled form; the same object always gives the same one."""
        known = self._types.get(id(source))
        if known is None:
            known = self._types[id(source)] = (source, self._build(source))
        return known[1]

    def to_come(self, source: InstanceType) -> tuple[CompiledType, ...]:
        """The type as if only what is not for sale for the moment were: its reservations apart from the rest."""
        known = self._to_come.get(id(source))
        if known is None:
            kinds: dict[bool, list[Offering]] = {}
            for offering in () if source.unsuited else source.offerings:
                if offering.is_to_come:
                    reserved = self._compile_offering(offering.requirements)[2] is not None
                    kinds.setdefault(reserved, []).append(replace(offering, available=True))
            made = tuple(self._build(replace(source, offerings=tuple(each))) for each in kinds.values())
            known = self._to_come[id(source)] = (source, made)
        return known[1]

    def _build(self, source: InstanceType) -> CompiledType:
        plain: list[CompiledOffering] = []  # those that hold what the type holds: nearly always all
        groups: dict[object, tuple[Resources, list[CompiledOffering]]] = {}
        listed: list[tuple[str, int]] = []
        offerings: list[CompiledOffering] = []
        overlaid = source.capacity_overlay
        known = self._offered
        for offering in source.offerings:
            asked = offering.requirements
            _, requirements, reservation = known.get(id(asked)) or self._compile_offering(asked)
            if offering.price_overlay:
                overlaid = True
            if reservation is not None:
                listed.append((reservation, offering.reservation_capacity))
            if not offering.available:
                continue
            compiled = CompiledOffering(
                requirements, offering.price, reservation, offering.reservation_capacity, offering
            )
            offerings.append(compiled)
            members = plain
            if offering.capacity_override or offering.overhead_override:
                key = (_items(offering.capacity_override), _items(offering.overhead_override))
                if key not in groups:
                    groups[key] = (allocatable(source, offering), [])
                members = groups[key][1]
            elif not plain:
                groups[None] = (allocatable(source, offering), plain)
            members.append(compiled)
        return CompiledType(
            source=source,
            requirements=self._requirements(source),
            groups=tuple([(room, tuple(members)) for room, members in groups.values()]),
            offerings=tuple(offerings),
            listed=tuple(listed),
            overlaid=overlaid,
        )


class Compilers:
    """Holds the compiler of this process.

    A cloud's list of a thousand types consists of the same objects in one snapshot after the other, and compiling it
    takes longer than most decisions. So the compiler is kept, until it holds too many types.
    """

    _current = TypeCompiler()

    @classmethod
    def current(cls) -> TypeCompiler:
        if len(cls._current) > _MOST_KEPT:
            cls._current = TypeCompiler()
        return cls._current


def _items(amounts: Resources | None) -> tuple[tuple[str, int], ...] | None:
    return tuple(sorted(amounts.items())) if amounts else None


def allocatable(source: InstanceType, offering: Offering | None = None) -> dict[str, int]:
    """Capacity minus overhead; huge pages are taken off memory, which does not fall below zero for them (PLC-116)."""
    capacity, overhead = source.capacity, source.overhead
    if offering is not None and offering.capacity_override:
        capacity = {**capacity, **offering.capacity_override}
    if offering is not None and offering.overhead_override:
        overhead = {**overhead, **offering.overhead_override}
    room = {name: amount - overhead.get(name, 0) for name, amount in capacity.items()}
    pages = [name for name in capacity if name[:10] == "hugepages-"]
    if pages and MEMORY in room:
        room[MEMORY] = max(0, room[MEMORY] - sum([capacity[name] for name in pages]))
    return room


class TypeTable:
    def __init__(self, types: Sequence[CompiledType], dimensions: Dimensions, well_known: frozenset[str]) -> None:
        self.types = tuple(types)
        self.sources = [item.source for item in types]
        self.well_known = well_known
        self.dimensions = dimensions
        self.rows = [(number, group) for number, item in enumerate(types) for group in range(len(item.groups))]
        self.every = (1 << len(self.rows)) - 1
        self.simple = self.rows == [(number, 0) for number in range(len(types))]  # a row is a type
        self.type_rows = [0] * len(types)
        self._offerings: list[tuple[RequirementSet, int]] = []
        self._prices: list[list[float]] = []
        self.overlaid = any(item.overlaid for item in types)
        self._keys: dict[str, tuple[list[tuple[Requirement, int]], int]] = {}
        self._suiting: dict[Requirement, int] = {}
        self._index_rows()
        self.usable = self.every
        for row, (number, group) in enumerate(self.rows):
            if min(types[number].groups[group][0].values(), default=0) < 0:
                self.usable ^= 1 << row

    def _index_rows(self) -> None:
        found: dict[int, list[int]] = {}
        sets: dict[int, RequirementSet] = {}
        for row, (number, group) in enumerate(self.rows):
            bit = 1 << row
            self.type_rows[number] |= bit
            for offering in self.types[number].groups[group][1]:
                identity = id(offering.requirements)
                if identity in found:
                    found[identity].append(bit)
                else:
                    found[identity], sets[identity] = [bit], offering.requirements
        for identity, members in found.items():
            mask = 0
            for bit in members:
                mask |= bit
            self._offerings.append((sets[identity], mask))

    def _key(self, key: str) -> tuple[list[tuple[Requirement, int]], int]:
        """The distinct requirements of the types on a key with their rows, and the rows that do not know the key."""
        known = self._keys.get(key)
        if known is None:
            by_item: dict[Requirement, int] = {}
            without = 0
            for number, item in enumerate(self.types):
                requirement = item.requirements.get(key)
                if requirement is None:
                    without |= self.type_rows[number]
                else:
                    by_item[requirement] = by_item.get(requirement, 0) | self.type_rows[number]
            known = self._keys[key] = (list(by_item.items()), without)
        return known

    def overlapping(self, wanted: RequirementSet) -> int:
        """The rows whose types overlap on every shared key (PLC-120 (i))."""
        mask = self.every
        for item in wanted.values():
            suiting = self._suiting.get(item)
            if suiting is None:
                groups, suiting = self._key(item.key)
                for requirement, rows in groups:
                    if passes(requirement, item):
                        suiting |= rows
                self._suiting[item] = suiting
            mask &= suiting
        return mask

    def offered(self, wanted: RequirementSet) -> int:
        """The rows that have a suitable available offering (PLC-120 (ii))."""
        mask = 0
        for requirements, rows in self._offerings:
            if compatible(wanted, requirements, self.well_known):
                mask |= rows
        return mask

    def offered_values(self, key: str, wanted: RequirementSet, rows: int) -> frozenset[str]:
        """The values of a key that the suitable available offerings of these rows have."""
        found: set[str] = set()
        for requirements, of_rows in self._offerings:
            item = requirements.get(key)
            if item is None or not of_rows & rows or item.values <= found:
                continue
            if compatible(wanted, requirements, self.well_known):
                found |= item.values
        return frozenset(found)

    def prices(self, wanted: RequirementSet) -> list[float]:
        """The price of each type's cheapest available offering that suits; infinity without one (PLC-126)."""
        if not self._prices:
            self._prices = self._price_columns()
        suiting = [
            column
            for column, (requirements, _) in zip(self._prices, self._offerings, strict=True)
            if compatible(wanted, requirements, self.well_known)
        ]
        nothing = [inf] * len(self.types)
        return list(map(min, nothing, *suiting)) if suiting else nothing

    def _price_columns(self) -> list[list[float]]:
        """The price of each type in each requirement set of offerings."""
        columns = {id(requirements): [inf] * len(self.types) for requirements, _ in self._offerings}
        for number, item in enumerate(self.types):
            for offering in item.offerings:
                column = columns[id(offering.requirements)]
                if offering.price < column[number]:
                    column[number] = offering.price
        return list(columns.values())

    def rows_of(self, wanted: RequirementSet) -> int:
        """The rows that overlap and have a suitable offering (PLC-120)."""
        return self.overlapping(wanted) & self.offered(wanted)

    def types_in(self, rows: int) -> list[int]:
        """The numbers of the types that have a row in the mask, in list order."""
        return list(compress(range(len(self.types)), self.present(rows)))

    def present(self, rows: int) -> bytes:
        """1 or 0 for each type: whether it has a row in the mask."""
        if self.simple:  # formatting four hundred bits as digits is ten times faster than reading them one by one
            return f"{rows:0{len(self.types)}b}"[::-1].encode().translate(_DIGITS)
        found = bytearray(len(self.types))
        for row in bits(rows):
            found[self.rows[row][0]] = 1
        return bytes(found)
