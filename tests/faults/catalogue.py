"""Every fault that is tried, generated from the steps of the workflows.

A handful of lives stands for the rest in `make test`; `make soak` lives through every step of LaunchNode, DisruptNodes
(Empty), TerminateNode and of the Scheduler's carry-outs, killed before it and after it, in workflow code where it is
called, and with Temporal's database lost at that moment, with twenty claims each.
"""

from collections.abc import Iterator

from tests.faults.lives import Life
from worlds.fault_orders import Kill

# In the order of a life, so that one life can be struck several times.
LAUNCH = ("create_node_claims", "launch_instance", "await_joined")
LEAVE = ("begin_departure", "drain_node", "terminate_instance")
DISRUPT = ("mark_nodes", "await_marked", "delete_claims", "await_gone")
STEPS = (*LAUNCH, *LEAVE, *DISRUPT)

# One call stands for all claims of the plan; the others are called claim by claim.
ONCE = frozenset({"create_node_claims", "mark_nodes", "await_marked", "delete_claims", "await_gone"})

# Not a step: around the start of a workflow, by another one or by a step.
CHILDREN = ("starts:LaunchNode", "started:LaunchNode", "starts:DisruptNodes", "started:DisruptNodes")

MANY = 20


def kill(point: str, nodes: int, lose_database: bool = False) -> Kill:
    """A kill at a point, with as many standing there as the life has nodes."""
    count = 1 if point.partition(":")[2] in ONCE or "DisruptNodes" in point else nodes
    name = point.replace(":", "-") + ("-lost" if lose_database else "")
    return Kill(name=name, point=point, count=count, lose_database=lose_database)


def life(*points: str, nodes: int = 3, lose_database: bool = False) -> Life:
    """A life that is struck at these points, one after another."""
    return Life(kills=tuple(kill(p, nodes, lose_database) for p in points), nodes=nodes)


# The three moments that could cost most: launched and not written down; in mid-drain; tainted and not yet deleted.
MOMENTS = ("answered:launch", "during:drain_node", "after:mark_nodes")

# Between the end of the instances and the release of their claims, which are one step.
ENDED = "answered:terminate"

FEW = {
    "killed": life(*MOMENTS),
    "killed-in-between": life("started:LaunchNode", ENDED, "before:delete_claims"),
    "database-lost": life(*MOMENTS, lose_database=True),
    "each-step-twice": Life(mode="twice"),
    "each-step-failing": Life(mode="fail"),
}


def _everything() -> Iterator[tuple[str, Life]]:
    points = [f"{moment}:{step}" for step in STEPS for moment in ("before", "after", "calls")]
    points += [*CHILDREN, *MOMENTS, ENDED]
    for lose in (False, True):
        # Two or three strikes to a life, far apart: one from each of its parts.
        parts = [[p for p in points if _part(p) == part] for part in range(3)]
        for number in range(max(len(part) for part in parts)):
            chosen = [part[number] for part in parts if number < len(part)]
            words = f"{'lost' if lose else 'all'}-{number:02}-" + "-".join(p.replace(":", "-") for p in chosen)
            yield words, life(*chosen, nodes=MANY, lose_database=lose)


def _part(point: str) -> int:
    """In which part of a life a point is first reached."""
    name = point.partition(":")[2]
    if name in LAUNCH or name in ("launch", "LaunchNode"):
        return 0
    return 1 if name in LEAVE or point == ENDED else 2


EVERYTHING = dict(_everything())
LIVES = {**FEW, **EVERYTHING}
