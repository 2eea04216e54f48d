"""A backup of the ground's etcd, and the API server that forgot what came after it."""

from testbed.plane import find_binaries
from testbed.plane.backup import back_up, restore
from worlds.cluster.ground import Ground

CLASSES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


async def back_up_etcd(ground: Ground) -> None:
    """What is written from now on can be forgotten."""
    await back_up(ground.everything.plane.folder, find_binaries(lambda _line: None))


async def restore_etcd(ground: Ground) -> None:
    """Until our kinds are served again: an API server that has just started does not know them for a moment."""
    await restore(ground.everything.plane.folder, find_binaries(lambda _line: None))

    async def served() -> bool:
        answers = [await ground.api.get(path) for path in (CLASSES, POOLS, CLAIMS)]
        return all(answer.status == 200 for answer in answers)

    await ground.until(served, 60, "our kinds are served again")
