"""The situations that take real servers: an API server that is sick, a Temporal that hangs, a cloud that refuses.

The same kind of row as table.py: what is done, what a command must say within so many seconds and must not, and its
exit code. tests/cluster/test_situations.py plays them.
"""

from dataclasses import dataclass

from dovetail.model.values.json import Json
from tests.situations.happenings import (
    Happens,
    api_server_answers_503,
    broken_hardware,
    called_off,
    deleted_by_hand,
    drained_against_a_budget,
    fleets_are_refused,
    grows_old,
    impaired,
    never_registers,
    pool_deleted,
    recommended,
    scaled_down,
    sold_out,
    temporal_hangs,
    warned,
)
from tests.situations.scene import Asks
from tests.situations.table import CHECK, FORCEFUL, NEEDS, NOTHING
from worlds.cluster.objects import node_pool


@dataclass(frozen=True, slots=True, kw_only=True)
class OnServers:
    """`{node}`, `{claim}` and `{pod}` in a command are those of the settled Deployment, `{admin}` is a kubeconfig that
    may do everything; `after` is asked once it is over."""

    name: str
    happens: Happens
    asks: tuple[Asks, ...]
    after: tuple[Asks, ...] = ()
    pods: int = 1
    pool: Json | None = None
    gates: str = ""


def an_expiring_pool(capacity_type: str = "on-demand", expire_after: str = "720h") -> Json:
    pool = node_pool()
    template = pool["spec"]["template"]["spec"]
    template["requirements"][0]["values"], template["expireAfter"] = [capacity_type], expire_after
    return pool


def gone_for(reason: str, *more: str) -> tuple[Asks, ...]:
    """What log and history say of the node that the pods had."""
    return (
        Asks("log --since 1h --kind termination", (reason, "{node}", *more), (FORCEFUL,)),
        Asks("history {node}", ("terminate", reason), ("no workflow has worked on", FORCEFUL)),
    )


WELL = Asks(CHECK, (NOTHING,), ("!",))

SITUATIONS = (
    OnServers(
        name="Temporal hangs",
        happens=temporal_hangs,
        asks=(
            Asks(CHECK, ("! Temporal does not answer for", "docs/temporal-outages.md"), (f" {NOTHING}",), NEEDS),
            Asks("explain pod default/{pod}", ("it is bound to {node}",)),
            Asks("doctor", ("FAIL Temporal server", "1 check of"), ("see its log",), 1),
            Asks("log", ("Temporal",), ("Traceback", "busy"), 1),
        ),
        after=(WELL,),
    ),
    OnServers(
        name="the API server answers 503",
        happens=api_server_answers_503,
        asks=(
            Asks(CHECK, ("! the API server's objects are not seen", "1 node"), (f" {NOTHING}",), NEEDS),
            Asks("nodes", ("{node}",)),
        ),
        after=(WELL,),
    ),
    OnServers(
        name="no capacity",
        happens=sold_out,
        asks=(
            Asks(
                "status", ("the cloud has run out of m5.xlarge on-demand in us-west-2", " since 20", "asked for again")
            ),
            Asks("log --since 1h --kind launch", ("no_capacity",), (FORCEFUL, "Traceback")),
        ),
    ),
    OnServers(
        name="a launch is refused",
        happens=fleets_are_refused,
        asks=(
            Asks(
                CHECK,
                ("its launch is refused, for", "ec2:CreateFleet", "launch_instance", "times in a row"),
                (f" {NOTHING}",),
                NEEDS,
            ),
        ),
    ),
    OnServers(
        name="a node that somebody deleted",
        happens=deleted_by_hand,
        asks=(
            *gone_for("Deleted"),
            Asks(
                "cancel {claim} --reason late --kubeconfig {admin}", ("it went at", "dovetail history {claim}"), (), 1
            ),
        ),
    ),
    OnServers(
        name="a spot interruption",
        happens=warned,
        pool=an_expiring_pool("spot"),
        asks=gone_for("SpotInterrupted"),
    ),
    OnServers(name="an instance that the cloud retires", happens=warned, asks=gone_for("ScheduledChange")),
    OnServers(
        name="a rebalance recommendation takes nothing",
        happens=recommended,
        pool=an_expiring_pool("spot"),
        asks=(
            Asks("history {node}", ("ends: initialised",), ("terminate",)),
            Asks(CHECK, ("nothing is under way", NOTHING), ("drain",)),
        ),
    ),
    OnServers(name="an instance whose checks fail", happens=impaired, asks=gone_for("InstanceUnhealthy")),
    OnServers(name="a repair", happens=broken_hardware, gates="NodeRepair=true", asks=gone_for("NodeRepaired")),
    OnServers(name="expiry", happens=grows_old, pool=an_expiring_pool(expire_after="90s"), asks=gone_for("Expired")),
    OnServers(name="a NodePool that somebody deleted", happens=pool_deleted, asks=gone_for("NodePoolDeleted")),
    OnServers(
        name="a static NodePool that was scaled down",
        happens=scaled_down,
        gates="StaticCapacity=true",
        asks=(Asks("log --since 1h --kind termination", ("ScaledDown",), (FORCEFUL,)),),
    ),
    OnServers(
        name="an instance that never registers",
        happens=never_registers,
        asks=(
            Asks(
                "log --since 1h --kind termination -o wide",
                ("NeverRegistered", "no node within 900 s", "aws ec2 get-console-output", "--instance-id i-"),
                (FORCEFUL,),
            ),
        ),
    ),
    OnServers(
        name="a plan that a person called off",
        happens=called_off,
        asks=(
            Asks(
                "log --since 1h --kind disruption -o wide", ("Empty", "{node}", "cancelled by", "not now"), ("failed",)
            ),
            Asks("explain node {node}", ("A person called its last disruption off",), ("it would go now",)),
        ),
    ),
    OnServers(
        name="a budget holds a drain",
        happens=drained_against_a_budget,
        asks=(Asks("status", ("{node}", "drain", "1 pod left"), ("it would go now",)),),
    ),
)
