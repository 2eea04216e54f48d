"""Every pause, wait and pace of a node that leaves, in seconds where nothing else is said.

In the order of the steps: drain, evict, terminate.
"""

from typing import Final

from dovetail.model.values.backoff import Backoff

# Draining a node.
MINIMUM_DRAIN: Final = 3.0  # TRM-17: from the taint; pods that were bound before the scheduler saw it are still seen
UNREADABLE_LOOK: Final = 1.0  # between two looks at a node with a pod that cannot be read
INSTANCE_LOOK: Final = 10.0  # between two questions whether the instance of a silent node is there
ANSWERS: Final = 0.5  # that a look waits for the answers to its requests: most have come by then
OVERDUE: Final = 60.0  # past the deadline even a pod that cannot be read holds nothing any more (TRM-13)
MOVE_END: Final = 10.0  # after the last pod: by then its Deployment says that the move has ended
SLOW_DRAIN: Final = 5.0  # after this a notice says what holds the node (TRM-16: upstream warns 20 ms into every drain)

# Asking for the eviction of one pod again (TRM-26).
EVICTION_PAUSES: Final = Backoff(first=0.1, longest=10.0)
LEAVING_PAUSE: Final = 1.0  # at least, where it leaves or is gone: the watch shows it by then
ACCEPTED_PAUSE: Final = 10.0  # where its eviction was accepted: the watch of a slow API server shows it by then

# The share of an owner's pods that may be on their way at once, without any PDB.
OWNER_SHARE: Final = 0.1  # unless DOVETAIL_DRAIN_OWNER_SHARE says otherwise
TURN_WINDOW: Final = 60.0  # an eviction that is older takes no turn any more, nor does a pod that is not ready yet
LONGEST_TURN: Final = 60.0  # a pod waits no longer for its turn: what never gets ready holds no drain forever
TURN_PAUSE: Final = 0.2  # between two questions for the turn of a pod
SECONDS_PER_POD: Final = 2e-5  # between two counts of the cluster's pods, for each: a hundred times what it costs

# Evictions of all nodes together.
EVICTIONS_PER_SECOND: Final = 200.0  # what upstream's client allows itself for all its calls (OPS-1: kube-client-qps)
EVICTIONS_AT_ONCE: Final = 200.0  # after a quiet time
REPEATED_SHARE: Final = 10  # every tenth eviction may be a repeated request

# Terminating the instance.
TERMINATION_LOOK: Final = 5.0  # between two looks whether it is gone (TRM-36)
FIRST_TERMINATION_LOOKS: Final = (0.5, 0.5, 1.0, 1.0, 2.0, 3.0)  # before that: some instances are gone at once


def pause_after_look(look: int) -> float:
    """Until the next look whether an instance is gone, after so many."""
    return FIRST_TERMINATION_LOOKS[look - 1] if look <= len(FIRST_TERMINATION_LOOKS) else TERMINATION_LOOK


# Between two looks at a Node that the finalizers of others hold (decision 199): a fifth of the time waited so far, some
# 700 in a week.
HELD_LOOKS: Final = Backoff(first=1.0, longest=900.0, growth=1.2)
