"""A Deployment of one replica with its pod, for tests: guarded, settled, asked to restart."""

from dataclasses import replace
from typing import Any

from dovetail.model.objects.workloads import AdmissionGuard, Deployment, RollOut, SelectorSource
from dovetail.model.places.move_changes import GUARD, GUARD_KINDS
from dovetail.model.pods import Owner, Pod
from dovetail.model.snapshot import Snapshot
from tests.lifecycle.objects import a_web_pod

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z
NODE = "uid-node-1"

OWNER = Owner(api_version="apps/v1", kind="ReplicaSet", name="ledger-1", uid="uid-rs", controller=True)
ABOVE = Owner(api_version="apps/v1", kind="Deployment", name="ledger", uid="uid-ledger", controller=True)
GUARDS = {f"{kind}/{GUARD}": AdmissionGuard(name=GUARD, refuses=True) for kind in GUARD_KINDS}
REPLICA_SET = SelectorSource(kind="ReplicaSet", name="ledger-1", namespace="apps", uid="uid-rs", owners=(ABOVE,))


def a_moved_pod(**fields: Any) -> Pod:
    """The pod of the Deployment `ledger`, on node-1."""
    return replace(a_web_pod("ledger-1", owners=(OWNER,)), **fields)


def a_roll_out(**fields: Any) -> RollOut:
    """Settled, of one replica, asked to restart."""
    made = RollOut(
        generation=4,
        replicas=1,
        surges=True,
        paused=False,
        settled=True,
        timed_out=False,
        progress_seconds=600,
        names_node=False,
        wish="restart",
    )
    return replace(made, **fields)


def a_deployment(roll_out: RollOut | None = None) -> Deployment:
    """The Deployment `ledger`."""
    return Deployment(
        name="ledger", namespace="apps", uid="uid-ledger", resource_version="7", roll_out=roll_out or a_roll_out()
    )


def a_world(roll_out: RollOut | None, **fields: Any) -> Snapshot:
    """With the Deployment, where it has a roll-out, and its ReplicaSet."""
    deployments = {} if roll_out is None else {"apps/ledger": a_deployment(roll_out)}
    return Snapshot(
        now=NOW,
        deployments=deployments,
        selector_sources={"ReplicaSet/apps/ledger-1": REPLICA_SET},
        guards=GUARDS,
        **fields,
    )
