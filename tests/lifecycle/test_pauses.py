"""Which of the Caretaker's orders a pause holds back: what is voluntary, and nothing else."""

from dataclasses import replace

from dovetail.lifecycle.static_pools import shortfalls, surplus
from dovetail.lifecycle.unfinished import deserted, expired, next_expiry, owners, vanished
from dovetail.model import names
from dovetail.model.objects.workloads import Namespace
from dovetail.model.snapshot import Snapshot
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_new_pool, a_snapshot
from tests.lifecycle.test_gated import a_gated_snapshot, nodes, static

OLD = a_joined_claim(expire_after=100.0)


def paused(snapshot: Snapshot, what: str, until: str = "") -> Snapshot:
    annotations = {names.PAUSED: what, **({names.PAUSED_UNTIL: until} if until else {})}
    return replace(snapshot, namespaces={"kube-system": Namespace(name="kube-system", annotations=annotations)})


def test_what_has_expired_stays_while_expiry_is_paused() -> None:
    snapshot = a_snapshot(OLD)

    assert len(expired(snapshot)) == 1
    for what in ("expiry", "all", "", "nonsense"):
        assert expired(paused(snapshot, what)) == (), what
    for what in ("disruption", "launches", "drains", "false"):
        assert len(expired(paused(snapshot, what))) == 1, what


def test_what_has_expired_stays_for_the_pause_of_its_own_pool_alone() -> None:
    pool = a_new_pool(annotations={names.PAUSED: "expiry"})
    other = replace(OLD, name="other", uid="other", labels={names.NODE_POOL: "other"})
    snapshot = replace(a_snapshot(OLD, other), pools={"pool": pool})

    assert [order.claim.name for order in expired(snapshot)] == ["other"]


def test_the_end_of_the_pause_is_a_moment_to_look_again() -> None:
    snapshot = paused(a_snapshot(OLD), "expiry", "1970-01-01T01:00:00Z")

    assert (expired(snapshot), next_expiry(snapshot)) == ((), 3600.0)
    assert len(expired(replace(snapshot, now=3600.0))) == 1


def test_a_static_pool_shrinks_not_while_disruption_and_grows_not_while_launches_are_paused() -> None:
    large, small = a_gated_snapshot(static(1), *nodes(3)), a_gated_snapshot(static(5), *nodes(3))

    assert len(surplus(large, {})) == 2 and len(shortfalls(small)) == 1
    assert surplus(paused(large, "disruption"), {}) == ()
    assert len(surplus(paused(large, "launches"), {})) == 2
    assert shortfalls(paused(small, "launches")) == ()
    assert len(shortfalls(paused(small, "disruption"))) == 1


def test_what_is_not_voluntary_goes_on_whatever_is_paused() -> None:
    leaving = a_joined_node(deleting_since=1500.0)
    snapshot = paused(a_snapshot(a_joined_claim(), leaving), "all,drains")
    ending = paused(a_snapshot(a_joined_claim(deleting_since=1500.0)), "all,drains")
    lost = paused(a_snapshot(a_joined_claim()), "all,drains")

    assert [order.reason for order in deserted(snapshot)] == ["node_deleted"]
    assert [order.workflow_type for order in owners(ending)] == ["TerminateNode"]
    assert [order.reason for order in vanished(lost, ())] == ["garbage_collected"]
