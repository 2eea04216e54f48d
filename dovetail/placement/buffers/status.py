"""What should a CapacityBuffer's status contain (PLC-211, PLC-214)?

The transition time of a condition moves only when its status does.
"""

from dataclasses import replace
from typing import Final

from dovetail.model.names import PROVISIONING, READY_FOR_PROVISIONING
from dovetail.model.nodes import Condition
from dovetail.model.objects.buffers import BufferStatus, CapacityBuffer
from dovetail.placement.buffers.verdicts import BufferVerdict
from dovetail.placement.buffers.virtual_pods import Resolved, Unresolved

_TRUE: Final = "True"
_FALSE: Final = "False"


def resolved_status(buffer: CapacityBuffer, found: Resolved | Unresolved, now: float) -> BufferStatus:
    """After the buffer was resolved (PLC-211); for one of which no pass will see a pod, also its provisioning
    (PLC-214)."""
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


def judged_status(buffer: CapacityBuffer, verdict: BufferVerdict, now: float, held: str = "") -> BufferStatus:
    """After a pass that has placed the buffer's pods (PLC-214). `held`: why no further node is made for it."""
    if verdict == "RequiresNewCapacity":
        message = held or "some of its room does not stand yet"
        return _with(buffer.status, _not_provisioned(verdict, message, now), buffer.generation)
    message = "all its room stands"
    fits = Condition(type=PROVISIONING, status=_TRUE, reason=verdict, message=message, changed=now)
    return _with(buffer.status, fits, buffer.generation)


def _not_provisioned(reason: str, message: str, now: float) -> Condition:
    return Condition(type=PROVISIONING, status=_FALSE, reason=reason, message=message, changed=now)


def _with(status: BufferStatus, new: Condition, generation: int) -> BufferStatus:
    """The conditions, with this one replacing the one of its type."""
    old = next((c for c in status.conditions if c.type == new.type), None)
    changed = old.changed if old is not None and old.status == new.status else new.changed
    settled = replace(new, changed=changed, generation=generation)
    if old is None:
        return replace(status, conditions=(*status.conditions, settled))
    return replace(status, conditions=tuple(settled if c is old else c for c in status.conditions))
