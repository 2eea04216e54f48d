"""The phase of a workflow, one of the search attributes by which people find it.

Each change is a write to the server's index, which costs more than the step that it describes (measured: decision
record 286). So a workflow changes only its phase, and only when it enters a phase that may last. How a closed workflow
ended is its result.
"""

from typing import Final

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from dovetail.activities.identity.search_attributes import PHASE

# The phases that may last, of all workflows.
LASTING: Final = frozenset(
    {
        "initialising",
        "waiting for replacements",
        "draining before the delete",
        "draining",
        "terminating",
        "undoing",
    }
)


def show_phase(phase: str, *, unless_known: bool = False) -> None:
    """Let searches find the phase, if it may last. `unless_known`: not where the workflow began with it."""
    is_known = unless_known and workflow.info().typed_search_attributes.get(PHASE) == phase
    if phase in LASTING and not is_known:
        workflow.upsert_search_attributes([PHASE.value_set(phase)])
