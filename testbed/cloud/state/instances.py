"""All instances that were ever launched, each with its state at a moment.

States follow from moments fixed at launch and at termination, so no thread moves them along and a reader always sees
what the clock says. Terminated instances stay listed, as AWS keeps them for about an hour; callers must filter by
state.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import uuid4

from testbed.cloud.json_object import Json

CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}


@dataclass(slots=True, kw_only=True)
class Instance:
    """One instance; `template` is the launch template's data merged with the override that won."""

    number: int
    type: str
    zone: str
    subnet: str
    image: str
    capacity_type: str
    launched_at: float
    running_at: float
    joins_at: float | None
    template: Json
    tags: dict[str, str]
    security_groups: list[str]
    reservation: str
    volume_tags: dict[str, str] = field(default_factory=dict)
    user_data: str = ""
    profile: str | None = None
    client_token: str | None = None
    spot_request: str | None = None
    capacity_reservation: str | None = None
    reservation_specification: Json | None = None
    terminated_at: float | None = None
    gone_at: float | None = None
    forced_state: str | None = None
    reboots: int = 0
    extra: Json = field(default_factory=dict)
    changed: int = 0

    @property
    def id(self) -> str:
        """i- and 17 hexadecimal digits, in launch order."""
        return f"i-{self.number:017x}"

    @property
    def address(self) -> str:
        """Its private address; node names follow from it."""
        return f"10.1.{self.number >> 8}.{self.number & 255}"

    @property
    def node_name(self) -> str:
        """The private DNS name, which a kubelet on AWS registers under."""
        return f"ip-{self.address.replace('.', '-')}.{self.zone[:-1]}.compute.internal"

    def state(self, now: float) -> str:
        """What DescribeInstances says at that moment."""
        if self.gone_at is not None and now >= self.gone_at:
            return "terminated"
        if self.terminated_at is not None:  # also of one that was stopping or stopped: it can be terminated
            return "shutting-down"
        if self.forced_state is not None:
            return self.forced_state
        return "running" if now >= self.running_at else "pending"


class Instances:
    """All instances of one server, with a change counter that followers wait on."""

    def __init__(self) -> None:
        self.changes = threading.Condition()
        self.reset()

    def reset(self) -> None:
        """Forget everything; followers see a new epoch and start over."""
        with self.changes:
            self.epoch = uuid4().hex
            self.version = 0
            self._all: dict[str, Instance] = {}
            self.changes.notify_all()

    def __iter__(self) -> Iterator[Instance]:
        return iter(list(self._all.values()))

    def get(self, instance_id: str) -> Instance | None:
        """One instance by id, terminated ones too."""
        return self._all.get(instance_id)

    @property
    def next_number(self) -> int:
        """Numbers count launches from 1."""
        return len(self._all) + 1

    def add(self, instance: Instance) -> None:
        """Take in a launched instance."""
        self._all[instance.id] = instance
        self.touch(instance)

    def touch(self, instance: Instance) -> None:
        """Wake followers: this instance has changed."""
        with self.changes:
            self.version += 1
            instance.changed = self.version
            self.changes.notify_all()

    def live(self) -> list[Instance]:
        """Those that are not terminated, in launch order."""
        now = time.time()
        return [each for each in self._all.values() if each.state(now) != "terminated"]

    def terminate(self, instance: Instance, shutdown_seconds: float) -> None:
        """Begin to shut down; a second request changes nothing."""
        if instance.terminated_at is None:
            now = time.time()
            instance.terminated_at, instance.gone_at = now, now + shutdown_seconds
            self.touch(instance)

    def reboot(self, instance: Instance) -> None:
        """Its kubelet comes back with another boot id; EC2 goes on calling it running."""
        instance.reboots += 1
        self.touch(instance)

    def changed_since(self, epoch: str | None, version: int, wait: float) -> tuple[str, int, list[Instance]]:
        """Those that changed after that version; waits until there is one, at most `wait` seconds.

        A follower of an earlier epoch (before a reset) gets everything.
        """
        with self.changes:
            asked = (epoch or self.epoch, version)
            self.changes.wait_for(lambda: (self.epoch, self.version) != asked, timeout=wait)
            known = version if asked[0] == self.epoch else 0
            return self.epoch, self.version, [each for each in self._all.values() if each.changed > known]
