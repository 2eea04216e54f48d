"""When a workflow that runs for ever starts again as new, and how.

Its history would grow without end otherwise. A run that is pinned to one version of the worker leaves that version the
same way: the next run begins on the version that is current then.
"""

from typing import NoReturn

from temporalio import workflow


def due_for_renewal(max_history: int = 0) -> bool:
    """Whether the history is long enough, or a new version of the worker waits."""
    info = workflow.info()
    if max_history and info.get_current_history_length() > max_history:
        return True
    return info.is_continue_as_new_suggested() or info.is_target_worker_deployment_version_changed()


def renew(state: object) -> NoReturn:
    """Start again with this state."""
    workflow.continue_as_new(state, initial_versioning_behavior=workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE)
