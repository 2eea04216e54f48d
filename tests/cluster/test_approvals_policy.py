"""The shipped policy has everybody approve steps of NodeRollouts in their own name, on a real API server."""

from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from testbed.plane.api import ApiClient
from testbed.up import give_rights
from worlds.cluster.ground import Ground
from worlds.cluster.trouble import BINDINGS, POLICIES

pytestmark = pytest.mark.cluster

FILE: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "approvals.yaml"
ROLLOUTS: Final = "/apis/dovetail.sh/v1alpha1/noderollouts"
ROLLOUT: Final = f"{ROLLOUTS}/new-image"
REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
APPROVER: Final = "erin"


def a_rollout(name: str, **spec: Any) -> dict[str, Any]:
    steps = [{"name": "canary", "to": "1", "approve": {}}, {"name": "rest", "to": "100%"}]
    return {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "NodeRollout",
        "metadata": {"name": name},
        "spec": {"nodePool": "of-nobody", "steps": steps, **spec},
    }


def approval(by: str, digest: str = "1-2") -> dict[str, Any]:
    return {"step": "canary", "digest": digest, "by": by, "at": "2026-11-26T09:14:00Z"}


async def test_nobody_approves_in_the_name_of_another(ground: Ground) -> None:
    role, policy, binding = yaml.safe_load_all(FILE.read_text())
    await give_rights(ground.api, APPROVER, [role])
    for path, body in ((POLICIES, policy), (BINDINGS, binding)):
        assert (await ground.api.post(path, body)).status == 201
    assert (await ground.api.post(ROLLOUTS, a_rollout("new-image"))).status == 201
    digests = count()
    try:
        async with ApiClient(Path(ground.environment_of(APPROVER)["KUBECONFIG"])) as erin:

            async def in_force() -> bool:
                return (await erin.patch(ROLLOUT, given("admin", str(next(digests))))).status == 422

            def given(by: str, digest: str = "1-2") -> dict[str, Any]:
                return {"spec": {"approval": approval(by, digest)}}

            await ground.until(in_force, 60, "the policy is in force")
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            known = (await erin.post(REVIEWS, review)).body["status"]["userInfo"]["username"]
            ours = (await ground.api.post(REVIEWS, review)).body["status"]["userInfo"]["username"]
            assert known != ours
            answer = await erin.patch(ROLLOUT, given(known))
            assert answer.status == 200, answer.text

            refused = await ground.api.patch(ROLLOUT, given(known, "3-4"))
            assert refused.status == 422, "an administrator is no exception"
            assert "dovetail-approvals lets a person approve in that person's own name alone" in refused.text
            another = await ground.api.post(ROLLOUTS, a_rollout("another", approval=approval(known)))
            assert another.status == 422, "nor is one that is approved from its creation"
            for change in ({"intent": "Pause"}, {"approval": approval(ours)}, {"approval": None}):
                answer = await ground.api.patch(ROLLOUT, {"spec": change})
                assert answer.status == 200, "what stands there holds nobody up, and may be replaced or taken off"
            status = {"step": {"name": "canary", "state": "Awaiting", "since": "2026-11-26T09:14:00Z"}}
            assert (await ground.api.patch(f"{ROLLOUT}/status", {"status": status})).status == 200
    finally:
        await ground.api.delete(ROLLOUT)
        for path in (BINDINGS, POLICIES):
            await ground.api.delete(f"{path}/dovetail-approvals")


async def test_who_may_freeze_changes_nothing_else_of_ours(ground: Ground) -> None:
    await give_rights(ground.api, "frank", [yaml.safe_load(FILE.with_name("freezers.yaml").read_text())])
    kinds = "/apis/dovetail.sh/v1alpha1"
    spec = {"from": "2026-11-26T18:00:00+01:00", "until": "2026-11-27T08:00:00+01:00", "what": ["disruption"]}
    freeze = {"apiVersion": "dovetail.sh/v1alpha1", "kind": "Freeze", "metadata": {"name": "peak"}, "spec": spec}
    policy = {"apiVersion": "dovetail.sh/v1alpha1", "kind": "DisruptionPolicy", "metadata": {"name": "p"}, "spec": {}}
    async with ApiClient(Path(ground.environment_of("frank")["KUBECONFIG"])) as frank:
        made = await frank.post(f"{kinds}/freezes", freeze)
        assert made.status == 201, made.text
        later = {"spec": {"until": "2026-11-28T08:00:00+01:00"}}
        assert (await frank.patch(f"{kinds}/freezes/peak", later)).status == 200
        refused = [
            await frank.post(f"{kinds}/disruptionpolicies", policy),
            await frank.post(ROLLOUTS, a_rollout("theirs")),
            await frank.patch(
                "/api/v1/namespaces/kube-system", {"metadata": {"annotations": {"dovetail.sh/paused": ""}}}
            ),
        ]
        assert [answer.status for answer in refused] == [403, 403, 403]
        assert (await frank.delete(f"{kinds}/freezes/peak")).status == 200
