"""When a workflow that never ends starts again as new, and how.

Its history would grow without end otherwise. A run that is pinned to one version of the worker leaves that version the
same way: the next run begins on the version that is current then.
"""

from typing import NoReturn, Protocol

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.identity.cluster_header import HEADER
    from dovetail.activities.identity.search_attributes import attributes


class SingletonState(Protocol):
    """What each singleton carries from run to run, whatever else it does."""

    @property
    def cluster(self) -> str:
        """The cluster's name."""

    @property
    def cluster_uid(self) -> str:
        """The UID of its namespace kube-system; empty if unknown."""


def due_for_renewal(max_history: int = 0) -> bool:
    """Whether the history is long enough, or a new version of the worker waits."""
    info = workflow.info()
    if max_history and info.get_current_history_length() > max_history:
        return True
    return info.is_continue_as_new_suggested() or info.is_target_worker_deployment_version_changed()


def renew(state: SingletonState) -> NoReturn:
    """Start again with this state; its cluster is in the memo too, where it can be read without a worker."""
    memo = {**workflow.memo(), **({HEADER: state.cluster_uid} if state.cluster_uid else {})}
    workflow.continue_as_new(
        state,
        memo=memo or None,
        search_attributes=attributes(state.cluster),
        initial_versioning_behavior=workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
    )
