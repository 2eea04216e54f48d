"""What the product's own maker writes on a claim: a test that writes it by hand writes what it believes of it."""

from dovetail.activities.provisioning.create_node_claims import new_claim
from dovetail.messages.plans import ProposedNode
from dovetail.messages.requests import CreateRequest
from dovetail.model.own.claim_memory import Pin, with_memory
from worlds.disruption import CLASS


def made_by(plan: str, index: int = 0, reason: str = "drifted") -> dict[str, str]:
    """The annotations of the claim that a plan makes at that place, for no pod."""
    proposed = ProposedNode(pool="a", pool_uid="pool-a", node_class=CLASS, requirements=(), type_list=0)
    request = CreateRequest(plan_id=plan, proposed=(proposed,), type_lists=((),), reason=reason, indexes=(index,))
    return dict(new_claim(request, 0).annotations)


def launched_by(pin: Pin | None, **annotations: str) -> dict[str, str]:
    """These annotations of a claim, and what a roll-out wants of its launch."""
    return annotations if pin is None else with_memory(annotations, roll_out=pin)
