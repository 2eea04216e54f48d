"""The pods that would need another place if their node left, and how many of them ask for the same amounts."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from dovetail.model.objects.pod_index import NodePods
from dovetail.model.objects.pod_rules import is_reschedulable
from dovetail.model.pods import Pod
from dovetail.model.values.resources import Resources

Sizes = tuple[tuple[Resources, int], ...]


def sizes_of(pods: Iterable[Pod]) -> Sizes:
    """What the pods ask for, and how many ask for the same. Pods that are alike share one object."""
    found: dict[int, tuple[Resources, int]] = {}
    for pod in pods:
        requests = pod.requests
        found[id(requests)] = requests, found.get(id(requests), (requests, 0))[1] + 1
    return tuple(found.values())


class Moving(NamedTuple):
    """Pods that would move, and their sizes."""

    pods: tuple[Pod, ...]
    sizes: Sizes

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> Self:
        """These pods, with their sizes."""
        pods = tuple(pods)
        return cls(pods, sizes_of(pods))


def reschedulable(pods: NodePods) -> Moving:
    """The node's pods that will run elsewhere, themselves or as successors, unless something keeps them in place."""
    return Moving.of([pod for pod in pods if is_reschedulable(pod)])
