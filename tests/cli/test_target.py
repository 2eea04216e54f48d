"""Which cluster an order is for: what is said where it cannot be read or compared, and what is refused."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dovetail.cli.orders import compared
from dovetail.cli.orders.target import checked_target
from dovetail.connection.configuration import TemporalAway
from dovetail.connection.owner import OtherCluster
from dovetail.model.objects.workloads import Namespace
from dovetail.ports.failures import Forbidden
from dovetail.settings.settings import Settings, read_settings
from dovetail.wiring.orders import ClusterObjects

HERE = read_settings({"CLUSTER_NAME": "shop"})


def objects(answer: Namespace | Exception) -> ClusterObjects:
    async def read(name: str) -> Namespace:
        assert name == "kube-system"
        if isinstance(answer, Exception):
            raise answer
        return answer

    return cast(ClusterObjects, SimpleNamespace(namespaces=SimpleNamespace(read=read)))


def a_namespace() -> Namespace:
    return Namespace(name="kube-system", uid="u-1")


def temporal(monkeypatch: pytest.MonkeyPatch, owner: str | Exception) -> None:
    """Whose the workflows of the name are, as Temporal says it."""

    async def connect(settings: Settings) -> Any:
        if isinstance(owner, Exception):
            raise owner
        return "client"

    async def check(client: Any, cluster: str, uid: str) -> None:
        if owner != uid:
            raise OtherCluster(f"{cluster} is {owner}'s, and this one is {uid}")

    monkeypatch.setattr(compared, "connect", connect)
    monkeypatch.setattr(compared, "check_owner", check)


async def test_an_order_for_the_cluster_of_the_kubeconfig_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    temporal(monkeypatch, "u-1")
    found = await checked_target(HERE, objects(a_namespace()))
    assert found.words == "cluster shop (UID u-1 of kube-system)"


async def test_an_order_for_another_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    temporal(monkeypatch, "u-2")
    with pytest.raises(OtherCluster, match="shop is u-2's, and this one is u-1"):
        await checked_target(HERE, objects(a_namespace()))


async def test_without_temporal_an_order_is_carried_out_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    temporal(monkeypatch, TemporalAway("no server"))
    found = await checked_target(HERE, objects(a_namespace()))
    assert found.words == "cluster shop (UID u-1 of kube-system)"


async def test_without_a_name_temporal_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    temporal(monkeypatch, AssertionError("asked"))
    found = await checked_target(read_settings({}), objects(a_namespace()))
    assert found.words == "cluster (UID u-1 of kube-system)"


async def test_a_person_who_may_not_read_the_uid_is_told_that_nothing_was_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may still pause a NodePool, and annotate a NodeClaim."""
    temporal(monkeypatch, AssertionError("asked"))
    found = await checked_target(HERE, objects(Forbidden("Namespace/kube-system", "no right")))
    assert found.words == "cluster shop (its UID may not be read: not compared)"
