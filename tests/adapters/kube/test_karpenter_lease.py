"""A Karpenter that runs in the same cluster is seen by its Lease, and so is its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dovetail.adapters.kube import karpenter_lease
from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.karpenter_lease import KarpenterLease
from dovetail.background.supervised import stop
from dovetail.model.values.json import Json
from dovetail.ports.failures import NotSeenYet
from tests.adapters.kube.fake_server import Reply, fake_server, says, talking
from tests.waiting import until

PATH = "/apis/coordination.k8s.io/v1/leases"
NOW = 1_790_000_100.0  # 2026-09-21T14:15:00Z


def a_lease(namespace: str = "karpenter", **spec: Any) -> Json:
    meta = {"name": "karpenter-leader-election", "namespace": namespace}
    given = {
        "holderIdentity": "karpenter-abc_1",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-09-21T14:14:58.123456Z",
    }
    return {"metadata": meta, "spec": {**given, **spec}}


async def holder(tmp_path: Path, *replies: Reply) -> list[str]:
    """Who is seen to lead, look by look."""
    async with fake_server(tmp_path) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        server.on(PATH, *replies)
        lease, found = KarpenterLease(client, lambda: NOW, expected=False, own=()), []
        for _ in replies:
            await lease.look()
            found.append(lease.holder)
        assert server.asked[0][2]["fieldSelector"] == "metadata.name=karpenter-leader-election"
        await client.close()
    return found


def items(*leases: Json) -> Reply:
    return says(200, {"metadata": {"resourceVersion": "9"}, "items": list(leases)})


async def test_a_leader_is_named_until_it_gives_its_lease_up(tmp_path: Path) -> None:
    given_up = a_lease(holderIdentity="", leaseDurationSeconds=1)
    who = "karpenter-abc_1 in namespace karpenter"
    assert await holder(tmp_path, items(), items(a_lease()), items(given_up)) == ["", who, ""]


@pytest.mark.parametrize(
    ("spec", "leads"),
    [
        ({"renewTime": "2026-09-21T14:14:31.000000Z"}, True),  # it has missed a renewal or two
        ({"renewTime": "2026-09-21T14:14:29.000000Z"}, False),  # it was killed
        ({"renewTime": None}, False),
        ({"renewTime": "soon"}, False),
        ({"holderIdentity": None}, False),
        ({"leaseDurationSeconds": None}, True),
        ({"leaseDurationSeconds": 300}, True),
        ({"leaseDurationSeconds": 301}, False),  # no leader's: nobody could take over for so long
        ({"leaseDurationSeconds": 2147483647}, False),
        ({"renewTime": "2026-09-21T14:15:59.000000Z"}, True),  # its clock is ahead of the API server's
        ({"renewTime": "2026-09-21T14:16:01.000000Z"}, False),  # nobody has renewed it yet
        ({"renewTime": "2094-09-21T14:14:31.000000Z"}, False),
    ],
)
async def test_a_lease_that_has_run_out_or_cannot_be_read_is_nobodys(
    tmp_path: Path, spec: dict[str, Any], leads: bool
) -> None:
    [found] = await holder(tmp_path, items(a_lease(**spec)))
    assert bool(found) is leads


async def test_what_cannot_be_asked_counts_as_it_was(tmp_path: Path) -> None:
    refused, away = says(403, {"message": "may not"}), says(503, {"message": "away"})
    who = "karpenter-abc_1 in namespace karpenter"
    assert await holder(tmp_path, refused, items(a_lease()), away) == ["", who, who]


@pytest.mark.parametrize("page", [b"<html>We will be back soon</html>", b'{"message": "away"}'])
@pytest.mark.parametrize("status", [200, 429, 500, 503])
async def test_until_the_first_answer_a_worker_stands_aside(tmp_path: Path, status: int, page: bytes) -> None:
    """A Karpenter that runs would launch a second instance for each claim. What is known is not forgotten."""
    async with fake_server(tmp_path) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        server.on(PATH, says(status, page), items(), says(status, page))
        lease, found = KarpenterLease(client, lambda: NOW, expected=False, own=()), []
        for _ in range(3):
            await lease.look()
            found.append(lease.trouble())
        await client.close()

    assert found[0].startswith("it is not known yet whether Karpenter runs in this cluster: ") and found[1:] == ["", ""]


async def test_who_may_not_look_says_so_until_it_may(tmp_path: Path) -> None:
    """`doctor` says that no Karpenter runs only where that was seen."""
    async with fake_server(tmp_path) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        refused = says(403, {"kind": "Status", "message": "may not list leases"})
        server.on(PATH, refused, refused, items())
        lease = KarpenterLease(client, lambda: NOW, expected=False, own=())
        await lease.look()
        await lease.look()
        assert lease.trouble() == "" and "cannot be seen: " in lease.elsewhere() and "may not list" in lease.elsewhere()
        await lease.look()
        assert lease.trouble() == lease.elsewhere() == ""
        await client.close()


@pytest.mark.parametrize(("refusals", "acts"), [(1, False), (2, True)])
async def test_a_refusal_is_believed_at_the_second_look_and_soon_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refusals: int, acts: bool
) -> None:
    """An API server that has just started may refuse what it grants a moment later, while a Karpenter runs."""
    monkeypatch.setattr(karpenter_lease, "LOOK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(karpenter_lease, "LOOK_SECONDS", 1e9)
    async with fake_server(tmp_path) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        refused = says(403, {"kind": "Status", "message": "may not list leases"})
        server.on(PATH, *[refused] * refusals, items(a_lease()))
        lease = KarpenterLease(client, lambda: NOW, expected=False, own=())
        for _ in range(refusals):
            await lease.look()
        trouble = lease.trouble()
        keeping = asyncio.create_task(lease.keep())
        await until(lambda: lease.holder, words="the Karpenter is seen")
        await stop(keeping)
        await client.close()

    assert (trouble == "") is acts and (acts or "may not list leases" in trouble)
    assert [record.getMessage().startswith("cannot find out") for record in caplog.records].count(True) == 1


@pytest.mark.parametrize(("expected", "stands_aside"), [(False, True), (True, False)])
async def test_only_a_worker_that_acts_stands_aside(tmp_path: Path, expected: bool, stands_aside: bool) -> None:
    async with fake_server(tmp_path) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        server.on(PATH, items(a_lease()))
        lease = KarpenterLease(client, lambda: NOW, expected=expected, own=())
        await lease.look()
        await client.close()

    assert lease.holder == "karpenter-abc_1 in namespace karpenter"
    assert bool(lease.trouble()) is stands_aside


@asynccontextmanager
async def looking(tmp_path: Path, *leases: Json, own: tuple[str, ...] = ()) -> AsyncIterator[KarpenterLease]:
    """After one look."""
    async with fake_server(tmp_path) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        server.on(PATH, items(*leases))
        lease = KarpenterLease(client, lambda: NOW, own=own, expected=False)
        await lease.look()
        yield lease
        await client.close()


@pytest.mark.parametrize("namespace", ["karpenter", "kube-system", "ours", "infra"])
async def test_a_lease_counts_where_karpenter_is_installed(tmp_path: Path, namespace: str) -> None:
    async with looking(tmp_path, a_lease(namespace), own=("ours", "infra")) as lease:
        assert f"karpenter-abc_1 in namespace {namespace}" in lease.trouble()
        assert lease.elsewhere() == ""


async def test_a_lease_of_a_tenant_stops_nobody_and_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever may edit a namespace may write one there."""
    tenants = [a_lease(f"team-{n}", holderIdentity="\n" * 999) for n in range(5)]
    async with looking(tmp_path, *tenants, own=("ours", "")) as lease:
        assert lease.trouble() == ""
        assert lease.elsewhere() == (
            "a Lease karpenter-leader-election is held in namespace team-0, team-1, team-2 and 2 more, and stops "
            "nobody: only those in karpenter, kube-system, ours do"
        )
        await lease.look()
    [said] = [record.getMessage() for record in caplog.records]
    assert lease.elsewhere() in said and "LEADER_ELECTION_NAMESPACE" in said


async def test_a_tenant_hides_no_karpenter(tmp_path: Path) -> None:
    async with looking(tmp_path, a_lease("a-team", holderIdentity="nobody"), a_lease()) as lease:
        assert lease.holder == "karpenter-abc_1 in namespace karpenter"


async def test_while_nobody_knows_the_time_the_last_answer_counts(tmp_path: Path) -> None:
    """By a clock two hours ahead every Lease is over; the next look is a minute away, and both would act until then."""
    times: list[float | None] = [NOW, None, NOW]

    def now() -> float:
        time = times[0]
        if time is None:
            raise NotSeenYet("time", "the clock of this worker is 7200 s behind the API server's")
        return time

    async with talking(tmp_path) as (server, client):
        server.on(PATH, items(a_lease()))
        lease, found = KarpenterLease(client, now, expected=False, own=()), []
        while times:
            await lease.look()
            found.append(bool(lease.holder))
            del times[0]
    assert found == [True, True, True]
