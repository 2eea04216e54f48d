"""The contract of Notices (EVT-0)."""

from dovetail.notices.notice import Notice
from tests.ports.objects import a_least_node, a_least_pod
from tests.ports.worlds.contract import World, unique


class TestNotices:
    async def test_a_notice_is_an_event_about_its_object(self, world: World) -> None:
        node = await world.apply(a_least_node(unique("node")))
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]

        await world.notices.publish(
            Notice(
                kind="Node", name=name, uid=uid, type="Warning", reason="FailedDraining", message="two pods are left"
            )
        )

        (event,) = [e for e in await world.events_about("Node", name) if e["reason"] == "FailedDraining"]
        assert (event["type"], event["message"]) == ("Warning", "two pods are left")
        assert (event["involvedObject"]["uid"], event["source"]["component"]) == (uid, "karpenter")

    async def test_the_event_about_a_pod_stands_in_its_namespace(self, world: World) -> None:
        pod = await world.apply(a_least_pod(unique("pod"), "nowhere"))
        name = pod["metadata"]["name"]

        await world.notices.publish(
            Notice(
                kind="Pod", namespace="default", name=name, uid=pod["metadata"]["uid"], reason="Evicted", message="m"
            )
        )

        (event,) = [e for e in await world.events_about("Pod", name) if e["reason"] == "Evicted"]
        assert event["metadata"]["namespace"] == "default"

    async def test_the_same_notice_is_published_once_within_its_window(self, world: World) -> None:
        notice = Notice(kind="NodeClaim", name=unique("claim"), reason="Waiting", message="first")
        again = Notice(kind="NodeClaim", name=notice.name, reason="waiting", message="second")
        other = Notice(kind="NodeClaim", name=notice.name, reason="Waiting", message="third", distinct="other")

        await world.notices.publish(notice, again)
        await world.notices.publish(again, other)

        events = await world.events_about("NodeClaim", notice.name)
        assert sorted(e["message"] for e in events) == ["first", "third"]

    async def test_the_same_words_count_their_event_up(self, world: World) -> None:
        """EVT-0: `kubectl describe` shows x2."""
        notice = Notice(kind="NodeClaim", name=unique("claim"), reason="Moved", message="m", window=0.0)

        await world.notices.publish(notice)
        await world.notices.publish(notice)

        (event,) = await world.events_about("NodeClaim", notice.name)
        assert event["count"] == 2
        assert event["firstTimestamp"] <= event["lastTimestamp"]

    async def test_similar_words_share_an_event_from_the_tenth_on(self, world: World) -> None:
        name = unique("claim")
        for number in range(12):
            await world.notices.publish(
                Notice(kind="NodeClaim", name=name, reason="Moved", message=f"m {number}", window=0.0)
            )

        found = {event["message"]: event["count"] for event in await world.events_about("NodeClaim", name)}
        alone = {f"m {number}": 1 for number in range(9)}
        assert found == {**alone, "(combined from similar events): m 11": 3}

    async def test_what_cannot_be_published_fails_no_caller(self, world: World) -> None:
        name = unique("pod")

        await world.notices.publish(
            Notice(kind="Pod", namespace=unique("no-such"), name=name, reason="Lost", message="m")
        )

        assert await world.events_about("Pod", name) == []
