"""Which changes of workflow code this worker begins.

A change of a workflow's commands stands behind `workflow.patched`. A run that takes it has a marker in its history;
workers of the previous version, which do not know the change, fail at that run's tasks: while both versions serve, and
after a roll-back until the newer version returns. So where workers are not versioned an upgrade has two steps: first
this version with DOVETAIL_KEEP_WAY_BACK, which begins nothing that the previous version could not continue; then, once
there is no need to go back, without it. Either way a run keeps what it has begun: only a run that reaches a change for
the first time is asked.
"""

from collections.abc import Callable
from typing import Final

from temporalio.worker import PatchActivationInput

# The changes that the previous version knows. Empty before 0.2.0: the first is named once its release is the previous.
PREVIOUS_KNOWS: Final = frozenset[str]()
EVERY_VERSION_KNOWS: Final = ("task-ended-before-",)  # numbered by the guard of the task's size


def changes_begun(*, keep_way_back: bool) -> Callable[[PatchActivationInput], bool] | None:
    """Called for each change that a run reaches for the first time; None: every change is begun."""
    return _known_before if keep_way_back else None


def _known_before(asked: PatchActivationInput) -> bool:
    return asked.patch_id in PREVIOUS_KNOWS or asked.patch_id.startswith(EVERY_VERSION_KNOWS)
