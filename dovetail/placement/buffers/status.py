"""What should stand in a CapacityBuffer's status (S-211, S-214)?

The trap avoided: a transition time that moves although the condition's status did not.
"""

from dataclasses import replace
from typing import Final

from dovetail.model.buffers import BufferStatus, CapacityBuffer
from dovetail.model.names import PROVISIONING, READY_FOR_PROVISIONING
from dovetail.model.nodes import Condition
from dovetail.placement.buffers.verdicts import Verdict
from dovetail.placement.buffers.virtual_pods import Resolved, Unresolved

_TRUE: Final = "True"
_FALSE: Final = "False"


def resolved_status(buffer: CapacityBuffer, found: Resolved | Unresolved, now: float) -> BufferStatus:
    """S-211; of a buffer that no pass will ever see also what S-214 says of it."""
    status = replace(buffer.status, strategy=buffer.strategy or None)
    if isinstance(found, Unresolved):
        unknown = replace(status, template=None, template_generation=None, replicas=None)
        ready = Condition(
            type=READY_FOR_PROVISIONING, status=_FALSE, reason=found.reason, message=found.message, changed=now
        )
        unready = _not_provisioned("NotReadyForProvisioning", "the buffer cannot be resolved", now)
        return _with(_with(unknown, ready, buffer.generation), unready, buffer.generation)
    known = replace(
        status,
        template=buffer.template or None,
        template_generation=found.generation if buffer.template else None,
        replicas=found.replicas,
    )
    message = f"room for {found.replicas} pods"
    ready = Condition(type=READY_FOR_PROVISIONING, status=_TRUE, reason="Resolved", message=message, changed=now)
    known = _with(known, ready, buffer.generation)
    if found.replicas:
        return known
    return _with(known, _not_provisioned("BufferEmpty", "the buffer asks for no pods", now), buffer.generation)


def judged_status(buffer: CapacityBuffer, verdict: Verdict, now: float) -> BufferStatus:
    """S-214, after a pass in which the buffer's pods were seen."""
    if verdict == "RequiresNewCapacity":
        message = "some of its room does not stand yet"
        return _with(buffer.status, _not_provisioned(verdict, message, now), buffer.generation)
    message = "all its room stands"
    fits = Condition(type=PROVISIONING, status=_TRUE, reason=verdict, message=message, changed=now)
    return _with(buffer.status, fits, buffer.generation)


def _not_provisioned(reason: str, message: str, now: float) -> Condition:
    return Condition(type=PROVISIONING, status=_FALSE, reason=reason, message=message, changed=now)


def _with(status: BufferStatus, wish: Condition, generation: int) -> BufferStatus:
    """With that condition in the place of the one of its type; others' conditions stay as they are."""
    old = next((c for c in status.conditions if c.type == wish.type), None)
    changed = old.changed if old is not None and old.status == wish.status else wish.changed
    settled = replace(wish, changed=changed, generation=generation)
    if old is None:
        return replace(status, conditions=(*status.conditions, settled))
    return replace(status, conditions=tuple(settled if c is old else c for c in status.conditions))
