"""What operations work with: one object per server that holds its parts, and one per call.

Everything that changes the cloud happens under `Cloud.lock`: moto takes no locks of its own, and two calls with one
client token must not both launch. Answers are written outside it.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.cloud.http import filters
from testbed.cloud.http.errors import dry_run_passed
from testbed.cloud.http.moto_side import MotoSide
from testbed.cloud.http.wire import Call
from testbed.cloud.json_object import Json
from testbed.cloud.settings import CloudSettings
from testbed.cloud.state.catalogue import Catalogue
from testbed.cloud.state.instances import Instances
from testbed.cloud.state.ledger import Ledger
from testbed.cloud.state.templates_store import Templates
from testbed.cloud.state.tokens import Tokens
from testbed.cloud.state.world import World

Page = tuple[Sequence[Any], str | None]


class Cloud:
    """One server's state."""

    def __init__(self, settings: CloudSettings) -> None:
        self.lock = threading.RLock()
        self.settings = settings
        self.world = World(settings.world)
        self.catalogue = Catalogue()
        self.instances = Instances()
        self.templates = Templates()
        self.tokens = Tokens()
        self._first_seen: dict[tuple[str, str, float], float] = {}  # what was declared with an end, and since when
        self.copied: set[str] = set()  # fields of answers that a caller has said before
        self.ledger = Ledger(settings.ledger)
        self.moto = MotoSide(settings, self.world)

    def reservation_end(self, reservation: str, ends_in: float) -> float:
        """The moment at which a reservation ends: its seconds count from when it was first seen so declared."""
        return self._since(("reservation", reservation, ends_in)) + ends_in

    def shift_times(self, zone: str, ends_in: float) -> tuple[float, float]:
        """From when to when traffic is shifted away from a zone, counted in the same way."""
        began = self._since(("shift", zone, ends_in))
        return began, began + ends_in

    def _since(self, declared: tuple[str, str, float]) -> float:
        return self._first_seen.setdefault(declared, time.time())

    def types(self) -> dict[str, Json]:
        """The facts of the types that the world offers now."""
        return self.catalogue.types(self.world["types"])

    def reset(self) -> None:
        """The world as it was at the start: no instances, templates, tokens, profiles or messages. The ledger stays."""
        with self.lock:
            self.tokens.reset()
            self._first_seen.clear()
            self.templates.reset()
            self.instances.reset()
            self.moto.reset()
            self.world.reset()


@dataclass(slots=True, kw_only=True)
class Work:
    """One call being carried out; `notes` go into its line of the ledger."""

    cloud: Cloud
    call: Call
    notes: Json = field(default_factory=dict)

    @property
    def params(self) -> Json:
        """Parameters under their API names."""
        return self.call.params

    @property
    def world(self) -> World:
        """The declared world."""
        return self.cloud.world

    def page(self, things: Sequence[Any], default: int = 1000, params: Json | None = None) -> Page:
        """One page and the token of the next: as many as are asked for, or fewer where the world has short pages."""
        asked = self.params if params is None else params
        most = self.world["pageSize"]
        size = int(asked.get("MaxResults") or default)
        return filters.page(things, {**asked, "MaxResults": size if most is None else min(size, int(most))})

    def effect_begins(self) -> None:
        """Everything was checked: a dry run ends here."""
        if self.params.get("DryRun"):
            raise dry_run_passed()


Operation = Callable[[Work], Json]
Operations = dict[tuple[str, str], Operation]
