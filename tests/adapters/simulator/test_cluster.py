"""The API server's promises, as the simulated cluster keeps them beyond what the port contracts ask."""

import pytest

from dovetail.adapters.simulator.api_server.rejected import Rejected
from tests.adapters.simulator.conftest import Stage
from tests.adapters.simulator.manifests import a_deployment
from worlds.manifests import node_manifest, pod_manifest, pool_manifest


def test_a_patch_that_changes_nothing_leaves_the_version_alone(stage: Stage) -> None:
    before = stage.world.apply(pool_manifest())

    after = stage.world.patch("NodePool", "default", {"spec": {"disruption": {"consolidateAfter": "0s"}}})

    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_the_generation_rises_with_the_spec_and_not_with_metadata_or_status(stage: Stage) -> None:
    stage.world.apply(pool_manifest())
    stage.world.patch("NodePool", "default", {"metadata": {"labels": {"a": "b"}}})
    unchanged = stage.world.patch("NodePool", "default", {"status": {"nodes": 1}}, "status")

    changed = stage.world.patch("NodePool", "default", {"spec": {"weight": 5}})

    assert (unchanged["metadata"]["generation"], changed["metadata"]["generation"]) == (1, 2)


def test_a_write_to_the_spec_does_not_reach_the_status_nor_the_other_way_round(stage: Stage) -> None:
    stage.world.apply(pool_manifest())

    stage.world.patch("NodePool", "default", {"status": {"nodes": 7}})
    body = stage.world.patch("NodePool", "default", {"spec": {"weight": 5}}, "status")

    assert (body.get("status"), body["spec"].get("weight")) == ({}, None)


def test_a_new_finalizer_on_a_deleting_object_is_refused(stage: Stage) -> None:
    stage.world.apply({**node_manifest(), "metadata": {"name": "n1", "finalizers": ["a/b"]}})
    stage.world.delete("Node", "n1")

    with pytest.raises(Rejected) as rejected:
        stage.world.patch("Node", "n1", {"metadata": {"finalizers": ["a/b", "c/d"]}})

    assert rejected.value.code == 422


def test_a_pool_that_breaks_a_rule_of_the_api_is_refused_with_that_rule(stage: Stage) -> None:
    with pytest.raises(Rejected) as rejected:
        stage.world.apply(pool_manifest(weight=101))

    assert rejected.value.code == 422
    assert "spec.weight" in rejected.value.message


def test_the_defaults_of_the_api_are_filled_in(stage: Stage) -> None:
    body = stage.world.apply(pool_manifest())

    assert body["spec"]["template"]["spec"]["expireAfter"] == "720h"
    assert body["spec"]["disruption"]["budgets"] == [{"nodes": "10%"}]


def test_an_unbound_pod_is_gone_with_its_deletion(stage: Stage) -> None:
    stage.world.apply(pod_manifest())

    stage.world.delete("Pod", "lone")

    assert stage.world.get("Pod", "lone") is None


def test_a_bound_pod_stays_for_its_grace_and_a_shorter_one_counts_from_the_first_deletion(stage: Stage) -> None:
    stage.world.apply(pod_manifest(nodeName="n1", terminationGracePeriodSeconds=60))
    stage.world.delete("Pod", "lone")
    stage.clock.now += 10

    stage.world.delete("Pod", "lone", grace=30)
    stage.world.delete("Pod", "lone", grace=45)

    metadata = (stage.world.get("Pod", "lone") or {})["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["deletionTimestamp"] == "2023-11-14T22:13:50Z"  # 30 s after 22:13:20, the first deletion


def test_every_write_is_in_the_ledger_with_its_actor_and_its_answer(stage: Stage) -> None:
    last = stage.world.ledger()[-1].id
    stage.world.apply(a_deployment(1))
    with pytest.raises(Rejected):
        stage.world.delete("Deployment", "absent")

    entries = [(e.actor, e.operation, e.kind, e.key, e.outcome) for e in stage.world.ledger(last)]

    assert entries == [
        ("kubectl", "cluster:create", "Deployment", "default/web", "ok"),
        ("kubectl", "cluster:delete", "Deployment", "default/absent", "404 NotFound"),
    ]
