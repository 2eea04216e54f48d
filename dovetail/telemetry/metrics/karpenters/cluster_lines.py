"""The gauges of nodes and pods as text, rewritten only for what has changed.

At 5,000 nodes and 100,000 pods a scrape has 260,000 such series, and nearly all are as they were half a minute ago.
Objects in the cache are never changed in place, so the same object has the same series; gauges.py defines them. The
text is kept as bytes in blocks, a node's pods together, so that a scrape neither looks at each pod nor encodes 30 MB
again.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from dovetail.model.nodes import Node
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.pod_rules import is_terminal
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import Resources, total
from dovetail.telemetry.metrics.exposition import head, inside, measured, number
from dovetail.telemetry.metrics.gauges import HELP, cluster_and_pools, node_amounts, node_labels, pod_labels, pod_place
from dovetail.telemetry.metrics.instruments import PREFIX

_LIFETIME: Final = "nodes_current_lifetime_seconds"
_PODS: Final = "pods_state"

# The place labels of pods without a known node.
_NOWHERE: Final = inside(pod_place(None, managed=False))


class _NodeText(NamedTuple):
    node: Node
    managed: bool
    families: dict[str, bytes]  # all but its lifetime: name -> lines
    lifetime: bytes  # the line without its value
    place: str  # the labels that it adds to each series of its pods
    asked: Resources  # what its pods request

    def says(self, node: Node, managed: bool) -> bool:
        """Whether the text is still right: a kubelet's repeated report does not change it."""
        mine = self.node
        return self.managed is managed and (
            mine is node
            or (mine.labels, mine.capacity, mine.allocatable, mine.created, mine.provider_id)
            == (node.labels, node.capacity, node.allocatable, node.created, node.provider_id)
        )


class ClusterLines:
    """The text of one worker's scrapes."""

    def __init__(self) -> None:
        self._nodes: dict[str, _NodeText] = {}
        self._pods = _PodLines()

    def blocks(self, snapshot: Snapshot) -> Iterator[bytes]:
        """All gauges from a snapshot, in whole lines."""
        managed = {claim.provider_id for claim in snapshot.claims.values() if claim.provider_id}
        judging = Judging()
        changed = self._pods.follow(snapshot.pods)
        places = {name: text.place for name, text in self._nodes.items()}
        self._follow_nodes(snapshot, managed, judging, changed)
        moved = {name for name in places.keys() | self._nodes.keys() if places.get(name) != self._place(name)}
        for name in changed | moved:
            self._pods.write(name, self._place(name), judging, anew=name in moved)
        yield from self._of_nodes(snapshot.now)
        others = cluster_and_pools(snapshot, judging, (text.asked for text in self._nodes.values()))
        yield written(measured(others))
        yield written(head(PREFIX + _PODS, HELP[_PODS], "gauge"))
        yield from self._pods.blocks.values()

    def _place(self, name: str) -> str:
        found = self._nodes.get(name)
        return _NOWHERE if found is None else found.place

    def _follow_nodes(self, snapshot: Snapshot, managed: set[str], judging: Judging, changed: set[str]) -> None:
        known, self._nodes = self._nodes, {}
        for name, node in snapshot.nodes.items():
            ours, before = node.provider_id in managed, known.get(name)
            if before is None or name in changed or not before.says(node, ours):
                found = judging.judge(node, "metrics", _node_text, node, self._pods.of_node(name), ours)
                if isinstance(found, Unjudged):
                    continue
                before = found
            self._nodes[name] = before

    def _of_nodes(self, now: float) -> Iterator[bytes]:
        texts = list(self._nodes.values())
        for family in dict.fromkeys(family for text in texts for family in text.families):
            yield written(head(PREFIX + family, HELP[family], "gauge"))
            yield from [text.families[family] for text in texts if family in text.families]
        if texts:
            yield written(head(PREFIX + _LIFETIME, HELP[_LIFETIME], "gauge"))
            yield b"".join([b"%b%.3f\n" % (text.lifetime, now - text.node.created) for text in texts])


class _PodLines:
    """The series of pods, by node. A pod is recognised by its object's identity, which is reliable because a reference
    is kept."""

    def __init__(self) -> None:
        self.blocks: dict[str, bytes] = {}
        self._held: dict[int, Pod] = {}
        self._order: list[Pod] = []
        self._texts: dict[str, dict[int, bytes]] = {}  # node -> pod -> its line; empty until written

    def follow(self, pods: Mapping[str, Pod]) -> set[str]:
        """Adopt the present pods; returns the nodes whose pods have changed."""
        before, self._order = self._order, [*pods.values()]
        if len(before) == len(self._order):
            pairs = zip(before, self._order, strict=True)
            return self._replaced([(old, new) for old, new in pairs if old is not new])
        held = dict(zip(map(id, self._order), self._order, strict=True))
        gone = [self._held[key] for key in self._held.keys() - held.keys()]
        come = [held[key] for key in held.keys() - self._held.keys()]
        return self._take_over(gone, come)

    def _replaced(self, pairs: list[tuple[Pod, Pod]]) -> set[str]:
        """The usual case, quickly recognised: as many pods as before, in the same order, with these pairs replaced."""
        gone, come = {id(old): old for old, _ in pairs}, {id(new): new for _, new in pairs}
        moved = gone.keys() & come.keys()
        return self._take_over(
            [pod for key, pod in gone.items() if key not in moved],
            [pod for key, pod in come.items() if key not in moved],
        )

    def _take_over(self, gone: Iterable[Pod], come: Iterable[Pod]) -> set[str]:
        changed = set()
        for pod in gone:
            del self._texts[pod.node_name][id(pod)]
            del self._held[id(pod)]
            changed.add(pod.node_name)
        for pod in come:
            self._texts.setdefault(pod.node_name, {})[id(pod)] = b""
            self._held[id(pod)] = pod
            changed.add(pod.node_name)
        return changed

    def of_node(self, name: str) -> list[Pod]:
        pods = (self._held[key] for key in self._texts.get(name, ()))
        return [pod for pod in pods if not is_terminal(pod)]

    def write(self, node: str, place: str, judging: Judging, *, anew: bool) -> None:
        """The text of its pods: write those not written yet, or all of them."""
        texts = self._texts.get(node)
        if not texts:
            self._texts.pop(node, None)
            self.blocks.pop(node, None)
            return
        for key, text in texts.items():
            if anew or not text:
                pod = self._held[key]
                found = judging.judge(pod, "metrics", _pod_text, pod, place)
                texts[key] = b"" if isinstance(found, Unjudged) else found
        self.blocks[node] = b"".join(texts.values())


def written(lines: Iterator[str]) -> bytes:
    return "".join([f"{line}\n" for line in lines]).encode()


def _pod_text(pod: Pod, place: str) -> bytes:
    return f"{PREFIX}{_PODS}{{{inside(pod_labels(pod))},{place}}} 1\n".encode()


def _node_text(node: Node, pods: list[Pod], managed: bool) -> _NodeText:
    labels = inside(node_labels(node, managed=managed))
    families = {
        name: "".join(
            [f'{PREFIX}{name}{{{labels},resource_type="{resource}"}} {number(value)}\n' for resource, value in amounts]
        ).encode()
        for name, amounts in node_amounts(node, pods).items()
    }
    return _NodeText(
        node=node,
        managed=managed,
        families={name: text for name, text in families.items() if text},
        lifetime=_open_line(_LIFETIME, labels, node.created),
        place=inside(pod_place(node, managed=managed)),
        asked=total([pod.requests for pod in pods]),
    )


def _open_line(name: str, labels: str, since: float) -> bytes:
    """A line without its value, for a node of known age."""
    number(-since)
    return f"{PREFIX}{name}{{{labels}}} ".encode()
