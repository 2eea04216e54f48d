"""The names under which workflows run. An id is a lock: one running workflow per id is all that Temporal promises."""


def scheduler_id(cluster: str) -> str:
    return f"{cluster}/scheduler"


def caretaker_id(cluster: str) -> str:
    """The singleton that finds what is unfinished."""
    return f"{cluster}/caretaker"


def interruptions_id(cluster: str) -> str:
    """The singleton that reads the cloud's queue."""
    return f"{cluster}/interruptions"


def claim_owner_id(cluster: str, claim: str) -> str:
    """The one owner of a claim, first LaunchNode, later TerminateNode."""
    return f"{cluster}/claim/{claim}"


def disruption_id(cluster: str, plan_id: str) -> str:
    return f"{cluster}/disrupt/{plan_id}"


def cluster_of(disruption: str) -> str:
    return disruption.partition("/disrupt/")[0]


def node_owner_id(cluster: str, node: str) -> str:
    """The owner of a deleting node that has no claim."""
    return f"{cluster}/node/{node}"


def is_of(cluster: str, identity: str) -> bool:
    """Whether that id is of a workflow of this cluster: an object may have been copied from another one, marks and
    all."""
    return identity.startswith(f"{cluster}/")


def query_of(cluster: str, condition: str) -> str:
    """A query to the list of workflows that finds those of this cluster alone: names of nodes and claims repeat."""
    return f"WorkflowId STARTS_WITH '{cluster}/' AND ({condition})"


def task_queue(cluster: str, name: str) -> str:
    """One of the task queues control, waits, watches, plan, cloud."""
    return f"dovetail/{cluster}/{name}"
