"""Answers that a real server gives too rarely for a test to wait for them."""

import time
from pathlib import Path
from typing import ClassVar

import pytest

from dovetail.adapters.kube.guards import DELETION_COSTS, PLACES, GuardedRight
from dovetail.adapters.kube.objects.claims import KubeNodeClaims
from dovetail.adapters.kube.objects.nodes import KubeNodes
from dovetail.adapters.kube.objects.notices import KubeNotices
from dovetail.adapters.kube.objects.pods import KubePods
from dovetail.adapters.kube.raw import KubeRawObjects
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.adapters.kubernetes_json.rendering.claims import render_claim
from dovetail.model.nodes import Node
from dovetail.model.pods import Pod
from dovetail.model.values.json import Json
from dovetail.notices.notice import Notice
from dovetail.ports.failures import Conflict, Failure, Forbidden, NotReadable, Refused, Taken, Throttled, Unreachable
from dovetail.ports.objects import MetadataChange
from tests.adapters.kube.fake_server import GONE, says, talking
from tests.ports.objects import a_least_node, a_least_pod, a_new_claim


def stored(body: Json, version: int = 5) -> Json:
    return {**body, "metadata": {**body["metadata"], "uid": "u", "resourceVersion": str(version)}}


def refused_by(right: GuardedRight) -> Json:
    """The answer of a policy that refuses, as the API server words it."""
    by = f"ValidatingAdmissionPolicy '{right.policy}' with binding '{right.policy}' denied request"
    return {"kind": "Status", "reason": "Invalid", "message": f'pods "p" is forbidden: {by}: {right.policy} lets …'}


def the_pod() -> Pod:
    return parse_pod(stored(a_least_pod("web", "n")))


class TestPods:
    PATH = "/api/v1/namespaces/default/pods/web"

    async def test_a_pod_that_cannot_be_read_is_not_passed_over(self, tmp_path: Path) -> None:
        broken = stored(a_least_pod("web", "n"))
        broken["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "much"
        async with talking(tmp_path) as (server, client):
            server.on("/api/v1/pods", says(200, {"metadata": {"resourceVersion": "9"}, "items": [broken]}))

            with pytest.raises(NotReadable, match="Pod/default/web: spec resources: "):
                await KubePods(client, clock=time.time).list_on("n")

    async def test_all_pages_are_read(self, tmp_path: Path) -> None:
        pages = [
            {"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [stored(a_least_pod("a", "n"))]},
            {"metadata": {"resourceVersion": "9"}, "items": [stored(a_least_pod("b", "n"))]},
        ]
        async with talking(tmp_path) as (server, client):
            server.on("/api/v1/pods", *[says(200, page) for page in pages])

            assert [pod.name for pod in await KubePods(client, clock=time.time).list_on("n")] == ["a", "b"]
        assert server.asked[1][2] == {"limit": "500", "fieldSelector": "spec.nodeName=n", "continue": "more"}

    async def test_a_server_that_is_too_busy_is_no_budget(self, tmp_path: Path) -> None:
        async with talking(tmp_path) as (server, client):
            body = {"kind": "Status", "reason": "TooManyRequests", "message": "too many requests"}
            server.on(f"{self.PATH}/eviction", says(429, body, {"Retry-After": "1"}))

            with pytest.raises(Throttled, match="too many requests"):
                await KubePods(client, clock=time.time).evict(the_pod())

    async def test_a_server_that_breaks_down_is_no_second_budget(self, tmp_path: Path) -> None:
        async with talking(tmp_path) as (server, client):
            server.on(
                f"{self.PATH}/eviction", says(500, {"kind": "Status", "reason": "InternalError", "message": "etcd"})
            )

            with pytest.raises(Unreachable, match="etcd"):
                await KubePods(client, clock=time.time).evict(the_pod())

    async def test_deleting_a_pod_that_is_gone_is_no_error(self, tmp_path: Path) -> None:
        """BEH-37. Nor is one of the same name that has come since: the server refuses the old one's UID."""
        successor = {**stored(a_least_pod("web", "n")), "metadata": {"name": "web", "uid": "another"}}
        async with talking(tmp_path) as (server, client):
            server.on(
                self.PATH, says(404, GONE), says(409, {"kind": "Status", "reason": "Conflict"}), says(200, successor)
            )

            await KubePods(client, clock=time.time).delete(the_pod(), 7)
            await KubePods(client, clock=time.time).delete(the_pod(), 7)

        assert [method for method, *_ in server.asked] == ["DELETE", "DELETE", "GET"]

    async def test_every_request_carries_the_uid(self, tmp_path: Path) -> None:
        async with talking(tmp_path) as (server, client):
            server.on(f"{self.PATH}/eviction", says(201))
            server.on(self.PATH, says(200))
            await KubePods(client, clock=time.time).evict(the_pod())
            await KubePods(client, clock=time.time).delete(the_pod(), 7)

        assert server.asked[0][3] == {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": the_pod().name, "namespace": the_pod().shape.namespace},
            "deleteOptions": {"preconditions": {"uid": "u"}},
        }
        assert server.asked[1][3] == {"gracePeriodSeconds": 7, "preconditions": {"uid": "u"}}

    async def test_a_nomination_is_for_this_very_pod_as_it_was_seen(self, tmp_path: Path) -> None:
        """PLQ-36. Empty takes it away; a pod that is gone needs none."""
        async with talking(tmp_path) as (server, client):
            status = f"{self.PATH}/status"
            conflict = says(409, {"reason": "Conflict", "message": "changed"})
            server.on(status, says(422, refused_by(PLACES)), says(200), says(200), says(404, GONE), conflict)
            pods = KubePods(client, clock=time.time)
            for node in ("node-1", "", "node-1"):
                await pods.nominate(the_pod(), node)
            with pytest.raises(Conflict, match="changed"):
                await pods.nominate(the_pod(), "node-1")

        assert {method for method, *_ in server.asked} == {"PATCH"}
        assert [query for _, _, query, _, _ in server.asked] == [{"dryRun": "All"}, {}, {}, {}, {}]
        same = {"uid": "u", "resourceVersion": "5"}
        assert [asked[3] for asked in server.asked[1:3]] == [
            {"metadata": same, "status": {"nominatedNodeName": "node-1"}},
            {"metadata": same, "status": {"nominatedNodeName": None}},
        ]

    async def test_an_annotation_is_for_this_very_pod_as_it_was_seen(self, tmp_path: Path) -> None:
        """DIQ-30. None takes it away; a pod that is gone needs none."""
        async with talking(tmp_path) as (server, client):
            conflict = says(409, {"reason": "Conflict", "message": "new"})
            server.on(self.PATH, says(422, refused_by(DELETION_COSTS)), says(200), says(200), says(404, GONE), conflict)
            pods = KubePods(client, clock=time.time)
            for value in ("-1", None, "-1"):
                await pods.annotate(the_pod(), "cost", value)
            with pytest.raises(Conflict, match="new"):
                await pods.annotate(the_pod(), "cost", "-1")

        assert [query for _, _, query, _, _ in server.asked] == [{"dryRun": "All"}, {}, {}, {}, {}]
        same = {"uid": "u", "resourceVersion": "5"}
        assert [asked[3] for asked in server.asked[1:3]] == [
            {"metadata": {**same, "annotations": {"cost": "-1"}}},
            {"metadata": {**same, "annotations": {"cost": None}}},
        ]

    async def test_a_pod_is_read_as_the_same_one_or_not_at_all(self, tmp_path: Path) -> None:
        successor = {
            **stored(a_least_pod("web", "n")),
            "metadata": {"name": "web", "namespace": "default", "uid": "another"},
        }
        async with talking(tmp_path) as (server, client):
            server.on(self.PATH, says(200, stored(a_least_pod("web", "n"), 7)), says(200, successor), says(404, GONE))

            found = await KubePods(client, clock=time.time).read(the_pod())
            assert found is not None and found.resource_version == "7"
            assert [await KubePods(client, clock=time.time).read(the_pod()) for _ in range(2)] == [None, None]


class TestClaims:
    PATH = "/apis/karpenter.sh/v1/nodeclaims"

    async def test_a_claim_that_ended_while_it_was_looked_at_is_tried_again(self, tmp_path: Path) -> None:
        async with talking(tmp_path) as (server, client):
            server.on(self.PATH, says(409, {"reason": "AlreadyExists", "message": "exists"}))

            with pytest.raises(Conflict, match="NodeClaim/c: existed a moment ago"):
                await KubeNodeClaims(client).create(a_new_claim("c"))

    async def test_a_taken_name_is_refused_with_its_writer(self, tmp_path: Path) -> None:
        other = {"metadata": {"name": "c", "uid": "u", "annotations": {"dovetail.sh/plan": "other/1"}}, "spec": {}}
        async with talking(tmp_path) as (server, client):
            server.on(self.PATH, says(409, {"reason": "AlreadyExists", "message": "exists"}))
            server.on(f"{self.PATH}/c", says(200, other))

            with pytest.raises(Taken, match="NodeClaim/c: exists and was made by other/1"):
                await KubeNodeClaims(client).create(a_new_claim("c"))

    async def test_a_deletion_is_known_by_its_answer_until_the_watch_brings_it(self, tmp_path: Path) -> None:
        body = render_claim(a_new_claim("c"))
        body["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
        body["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        async with talking(tmp_path) as (server, client):
            server.on(f"{self.PATH}/c", says(200, body))
            claims = KubeNodeClaims(client)

            assert claims.answered("c") is None
            assert await claims.delete("c", "u") == 7

        known = claims.answered("c")
        assert known is not None and (known.uid, known.deleting_since is None) == ("u", False)
        assert [method for method, *_ in server.asked] == ["DELETE"]

    async def test_a_claim_that_cannot_be_read_is_deleted_all_the_same(self, tmp_path: Path) -> None:
        body = {"metadata": {"name": "c", "uid": "u", "resourceVersion": "7", "finalizers": ["x"]}, "spec": 7}
        async with talking(tmp_path) as (server, client):
            server.on(f"{self.PATH}/c", says(200, body))

            assert await KubeNodeClaims(client).delete("c", "u") == 7


class TestNodes:
    async def test_without_a_view_all_nodes_are_looked_through(self, tmp_path: Path) -> None:
        items = [
            stored(a_least_node("a", "aws:///a/i-1")),
            stored(a_least_node("b", "aws:///a/i-2")),
            stored(a_least_node("c")),
        ]
        async with talking(tmp_path) as (server, client):
            server.on("/api/v1/nodes", says(200, {"metadata": {"resourceVersion": "9"}, "items": items}))

            assert [
                node.name for node in await KubeNodes(client, lookups=None).list_by_provider_id("aws:///a/i-2")
            ] == ["b"]
            assert await KubeNodes(client, lookups=None).list_by_provider_id("") == ()

    @pytest.mark.parametrize(
        ("field", "failure"), [("", Conflict), ("spec.taints[1]", Conflict), ("metadata.labels", Refused)]
    )
    async def test_a_part_that_others_have_changed_is_a_conflict_and_a_value_that_is_wrong_is_none(
        self, tmp_path: Path, field: str, failure: type[Failure]
    ) -> None:
        """PLM-8: the first is decided anew on the node as it is, the second by no retry."""
        causes = [{"reason": "FieldValueInvalid", "field": field}] if field else []
        async with talking(tmp_path) as (server, client):
            refusal = {"reason": "Invalid", "message": "rejected", "details": {"causes": causes}}
            server.on("/api/v1/nodes/n", says(422, refusal), says(200, stored(a_least_node("n"), version=6)))

            with pytest.raises(failure) as caught:
                await KubeNodes(client, lookups=None).patch(
                    parse_node(stored(a_least_node("n"))), MetadataChange(labels={"a": "1"})
                )

        assert server.asked[0][4]["Content-Type"] == "application/json-patch+json"
        if isinstance(caught.value, Conflict):
            current = caught.value.current
            assert isinstance(current, Node) and current.resource_version == "6"

    @pytest.mark.parametrize("causes", [[], [{"message": "denied"}]], ids=["webhook", "policy"])
    async def test_what_an_admission_policy_or_a_webhook_refuses_is_said_in_its_words_and_is_no_conflict(
        self, tmp_path: Path, causes: list[Json]
    ) -> None:
        refusal = {"reason": "Invalid", "message": "denied request: ask us", "details": {"causes": causes}}
        node = stored(a_least_node("n"))
        async with talking(tmp_path) as (server, client):
            server.on("/api/v1/nodes/n", says(422, refusal), says(200, node))

            with pytest.raises(Forbidden, match=r"^Node/n: denied request: ask us$"):
                await KubeNodes(client, lookups=None).patch(parse_node(node), MetadataChange(labels={"a": "1"}))


class TestNotices:
    async def test_a_window_that_has_passed_lets_a_notice_be_published_again(self, tmp_path: Path) -> None:
        moment = [1000.0]
        notice = Notice(kind="Node", name="n", reason="R", message="m", window=120.0)
        async with talking(tmp_path) as (server, client):
            server.on("/api/v1/namespaces/default/events", says(201))
            notices = KubeNotices(client, lambda: moment[0], node_classes=())
            for moment[0] in (1000.0, 1119.0, 1121.0):
                await notices.publish(notice)

        assert [method for method, *_ in server.asked] == ["POST", "PATCH", "POST"]  # it was gone: a new one
        assert server.asked[-1][3]["count"] == 2

    async def test_a_server_that_is_away_fails_no_publication(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with talking(tmp_path) as (server, client):
            server.on("/api/v1/namespaces/default/events", says(503, {"message": "away"}))

            await KubeNotices(client, clock=time.time, node_classes=()).publish(
                Notice(kind="Node", name="n", reason="R", message="two pods are left")
            )

        assert "not published: Event/R of Node/n: away (two pods are left)" in caplog.text


class TestRawObjects:
    PATH = "/api/v1/configmaps"
    AT = "/api/v1/namespaces/dovetail/configmaps"
    BODY: ClassVar[Json] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shortages"}, "data": {}}

    async def test_a_raw_object_is_read_and_changed_at_its_version(self, tmp_path: Path) -> None:
        async with talking(tmp_path) as (server, client):
            raw = KubeRawObjects(client, "ConfigMap", self.PATH, "dovetail")
            assert await raw.read("shortages") is None
            read = stored(self.BODY)
            assert await raw.patch(read, {"data": {"a": "0"}}) is None
            server.on(
                f"{self.AT}/shortages",
                says(200, stored(self.BODY, 6)),
                says(409, {"reason": "Conflict", "message": "old"}),
            )
            assert (await raw.patch(read, {"data": {"a": "1"}}) or {})["metadata"]["resourceVersion"] == "6"
            with pytest.raises(Conflict, match="ConfigMap/shortages"):
                await raw.patch(read, {"data": {"a": "2"}})

        patches = [body for method, _, _, body, _ in server.asked if method == "PATCH"]
        assert patches[1] == {"data": {"a": "1"}, "metadata": {"resourceVersion": "5"}}

    async def test_a_change_is_merged_into_what_is_there_and_makes_nothing(self, tmp_path: Path) -> None:
        change = {"data": {"a": "1", "b": None}}
        async with talking(tmp_path) as (server, client):
            raw = KubeRawObjects(client, "ConfigMap", self.PATH, "dovetail")
            with pytest.raises(Failure, match="ConfigMap/shortages"):
                await raw.merge("shortages", change)
            server.on(f"{self.AT}/shortages", says(200, stored(self.BODY, 6)))
            await raw.merge("shortages", change)

        assert [(method, body) for method, _, _, body, _ in server.asked] == [("PATCH", change)] * 2
