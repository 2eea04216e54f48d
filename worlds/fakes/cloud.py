"""A cloud whose answers a test sets."""

from collections.abc import Callable
from typing import Literal

from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.resources import Resources
from dovetail.ports.cloud import ClassNotReady, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Failure
from worlds.fakes.world import World


class FakeCloud:
    """Instances. A token launches once. `answer` replaces what a launch answers; `before`/`after` break a call."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tokens: dict[str, str] = {}
        self.answers: dict[str, Instance] = {}
        self.answer: NoCapacity | ClassNotReady | LaunchRefused | None = None
        self.prepared: Prepared | NoCapacity | ClassNotReady | LaunchRefused | None = None
        self.before: Failure | None = None  # the call never arrives
        self.after: Failure | None = None  # it arrives, and the answer is lost
        self.during: Callable[[], None] = lambda: None
        self.blind = False  # looking up by tag lags behind
        self.lingers = 0  # how often "terminating" is answered before "gone"
        self.size: Resources = {"cpu": 4 * 10**9, "memory": 16 * 2**30, "pods": 58}

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        self.world.ledger.append(f"prepare {claim.name}")
        return self.prepared or Prepared(request=f"request-{len(self.world.ledger)}")

    async def launch(
        self, claim: NodeClaim, request: str, token: str, share: GroupShare | None = None
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        self.world.ledger.append(f"launch {claim.name} {request}")
        if self.before is not None:
            raise self.before
        if self.answer is not None:
            return self.answer
        known = self.tokens.get(token)
        if known is not None and known != request:
            raise AssertionError("one token, two requests")
        if known is None:
            self.tokens[token] = request
            self._add_instance(claim, token)
        self.during()
        if self.after is not None:
            raise self.after
        return self.answers[token]  # as EC2: what was answered first, whatever has become of it

    def _add_instance(self, claim: NodeClaim, token: str) -> None:
        provider_id = f"aws:///zone/{token[:8]}"
        self.world.ledger.append(f"instance for {claim.uid}")
        self.answers[token] = self.world.instances[provider_id] = Instance(
            provider_id=provider_id,
            claim_uid=claim.uid,
            claim_name=claim.name,
            image_id="ami-1",
            labels={"node.kubernetes.io/instance-type": "m5.xlarge"},
            annotations={"karpenter.k8s.aws/ec2nodeclass-hash": "1"},
            capacity=self.size,
            allocatable=self.size,
        )

    async def find(self, claim_uid: str = "", provider_id: str = "") -> Instance | None:
        if claim_uid and self.blind:
            return None
        found = self.world.instances.values()
        wanted = (i for i in found if (i.claim_uid == claim_uid if claim_uid else i.provider_id == provider_id))
        # Newest first: a claim may have an older one that is ending.
        return next(iter(sorted(wanted, key=lambda i: i.state != "running")), None)

    async def terminate(self, provider_id: str, claim: str = "") -> Literal["terminating", "gone"]:
        self.world.ledger.append(f"terminate {provider_id}")
        if provider_id in self.world.instances and self.lingers > 0:
            self.lingers -= 1
            return "terminating"
        self.world.instances.pop(provider_id, None)
        return "gone"

    async def reboot(self, provider_id: str, claim: str = "") -> None:
        self.world.ledger.append(f"reboot {provider_id}")

    async def list_instances(self) -> tuple[Instance, ...]:
        return tuple(self.world.instances.values())
