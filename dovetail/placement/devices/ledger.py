"""Who has which device in one pass? No device is given twice (PLC-203, PLC-204, PLC-206).

Devices of allocated claims are taken, unless all pods that a claim is reserved for leave: then the claim and its
devices are allocated anew. What a pass gives to a pod stays with it for the rest of the pass. A draft may still be many
types: given devices are remembered for each group of types that bring the same ones, and types that cannot serve the
next pod are given up. A device that every node can use is taken once one group takes it.
"""

from dataclasses import dataclass, field

from dovetail.model.expressions.values import ExpressionError
from dovetail.model.objects.pod_rules import is_terminal
from dovetail.model.scheduling.devices import Allocation, Device, DeviceId
from dovetail.placement.devices.inventory import DeviceInventory, Stock, TypeGroup
from dovetail.placement.devices.needs import ClaimNeed, DeviceNeeds
from dovetail.placement.devices.search import Looks, Search
from dovetail.placement.facts.templates import Template

Where = tuple[str, int]  # ("node", its bit) or ("draft", its number)


@dataclass(slots=True)
class _Draft:
    """The devices that a draft has given, by number of the group of types, and their drivers."""

    given: dict[int, frozenset[DeviceId]] = field(default_factory=dict)
    drivers: set[str] = field(default_factory=set)


class DeviceLedger:
    """The devices in one pass. `gone`: names of nodes that leave, or are imagined gone."""

    def __init__(self, inventory: DeviceInventory, gone: frozenset[str]) -> None:
        self._inventory = inventory
        self._taken: set[DeviceId] = set()
        self._standing: dict[str, Allocation] = {}  # of claims that keep what they have
        for claim in inventory.allocated:
            allocation = claim.allocation
            if allocation is not None and not all(self._leaves(uid, gone) for uid in claim.reserved_for):
                self._standing[claim.key] = allocation
                self._taken.update(allocation.devices)
        self._of_node: dict[int, frozenset[DeviceId]] = {}  # given devices that an existing node has yet to bring
        self._drafts: dict[int, _Draft] = {}
        self._booked: dict[str, Where] = {}  # claims that this pass has allocated
        self._looks: dict[DeviceNeeds, Looks] = {}
        self._on_node: tuple[Device, ...] = ()  # found by the last question, until committed
        self._by_group: dict[int, tuple[Device, ...]] = {}
        self.error = ""  # of the last selector that had no value

    def _leaves(self, uid: str, gone: frozenset[str]) -> bool:
        if "/" in uid:
            return False
        pod = self._inventory.snapshot.pods.get(uid)
        return pod is None or pod.deleting_since is not None or is_terminal(pod) or pod.node_name in gone

    # --- existing nodes

    def fits_node(self, needs: DeviceNeeds, bit: int) -> bool:
        claims = self._open_claims(needs, ("node", bit))
        if claims is None:
            return False
        stock = self._inventory.stock(bit)
        found = self._find(needs, claims, stock, self._of_node.get(bit, frozenset()))
        if found is None:
            return False
        self._on_node = found
        return True

    def commit_node(self, needs: DeviceNeeds, bit: int) -> None:
        """Put the pod on the node for which `fits_node` was asked last."""
        own = {device.id for device in self._inventory.stock(bit).own}
        chosen = {device.id for device in self._on_node}
        if given := chosen & own:
            self._of_node[bit] = self._of_node.get(bit, frozenset()) | given
        self._taken |= chosen - own
        self._book(needs, ("node", bit))

    # --- drafts

    def rows(self, needs: DeviceNeeds, template: Template, rows: int, draft: int = -1) -> int:
        """The rows whose types bring what the pod needs on top of what the draft has given; -1: a new draft."""
        self._by_group = {}
        claims = self._open_claims(needs, ("draft", draft))
        if claims is None:
            return 0
        if not claims:
            return rows
        before = self._drafts.get(draft, _Draft()).given
        left = 0
        for number, group in enumerate(self._inventory.groups(template)):
            if group.rows & rows and self._group_fits(needs, claims, (number, group), before.get(number, frozenset())):
                left |= group.rows & rows
        return left

    def _group_fits(
        self, needs: DeviceNeeds, claims: list[ClaimNeed], group: tuple[int, TypeGroup], given: frozenset[DeviceId]
    ) -> bool:
        devices = group[1].devices
        stock = Stock(devices=(*devices, *self._inventory.everywhere), whole=True, own=devices)
        found = self._find(needs, claims, stock, given)
        if found is None:
            return False
        self._by_group[group[0]] = found
        return True

    def commit_draft(self, needs: DeviceNeeds, draft: int) -> None:
        """Put the pod on the draft for which `rows` was asked last."""
        entry = self._drafts.setdefault(draft, _Draft())
        everywhere = {device.id for device in self._inventory.everywhere}
        for number, found in self._by_group.items():
            chosen = {device.id for device in found}
            entry.given[number] = entry.given.get(number, frozenset()) | (chosen - everywhere)
            entry.drivers.update(device.id.driver for device in found if device.id not in everywhere)
            self._taken |= chosen & everywhere
        self._book(needs, ("draft", draft))

    def drivers(self, draft: int) -> tuple[str, ...]:
        return tuple(sorted(self._drafts[draft].drivers)) if draft in self._drafts else ()

    # --- why not

    def why_no_type(self, needs: DeviceNeeds, template: Template, rows: int) -> str:
        """What the pod needs and no type of these rows brings, in words."""
        self.error = ""
        for claim in needs.claims:
            alone = DeviceNeeds(claims=(claim,))
            if not self.rows(alone, template, rows):
                asked = " and ".join(" or ".join(each.words for each in request) for request in claim.requests)
                ended = "; not every device was looked at, for that its selectors are too long, or too many devices"
                is_cut = alone in self._looks and self._looks[alone].exhausted
                return f"resource claim {claim.name}: {self._why_alone(claim, asked)}{ended if is_cut else ''}"
        return "no type brings the devices of all its resource claims together"

    def _why_alone(self, claim: ClaimNeed, asked: str) -> str:
        if claim.key in self._standing or claim.key in self._booked:
            return f"{claim.key} is allocated on another node"
        return f"no type is known to bring {asked}{f' ({self.error})' if self.error else ''}"

    # --- both

    def _open_claims(self, needs: DeviceNeeds, where: Where) -> list[ClaimNeed] | None:
        """The claims without devices so far; None: one has devices elsewhere."""
        found: list[ClaimNeed] = []
        for claim in needs.claims:
            standing, booked = self._standing.get(claim.key), self._booked.get(claim.key)
            if standing is not None:
                nodes = standing.nodes
                if not (nodes.everywhere if where[0] == "draft" else self._inventory.suits(nodes, where[1])):
                    return None
            elif booked is None:
                found.append(claim)
            elif booked != where:
                return None
        return found

    def _find(
        self, needs: DeviceNeeds, claims: list[ClaimNeed], stock: Stock, given: frozenset[DeviceId]
    ) -> tuple[Device, ...] | None:
        if not claims:
            return ()
        if not stock.devices:
            return None
        taken = [self._taken, given] if given else [self._taken]  # the devices of a new node have names of their own
        looks = self._looks.setdefault(needs, Looks())
        try:
            return Search(stock.devices, taken, stock.whole, self._inventory.matcher, looks).find(claims)
        except ExpressionError as error:
            self.error = str(error)
            return None

    def _book(self, needs: DeviceNeeds, where: Where) -> None:
        for claim in needs.claims:
            if claim.key and claim.key not in self._standing:
                self._booked.setdefault(claim.key, where)
