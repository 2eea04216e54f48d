"""Whether the server has no such kind, as its own discovery says.

A 404 at the path of a kind may be anybody's who stands before the API server: a proxy that starts, a gateway without
its route. Taken for "not installed", it would let every Freeze and every policy be forgotten at once.
"""

from dovetail.adapters.kube.requests import Caller, Request
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure

GROUPS = "/apis"


async def is_absent(client: Caller, path: str) -> bool:
    """Whether discovery is answered in its own form and lists no such kind. False also where it cannot be asked."""
    version, _, plural = path.rpartition("/")
    try:
        groups = await _discovered(client, GROUPS, "APIGroupList")
        served = {each["groupVersion"] for group in groups["groups"] for each in group["versions"]}
        if served and version.removeprefix(f"{GROUPS}/") not in served:
            return True
        resources = await _discovered(client, version, "APIResourceList")
        return plural not in {each["name"] for each in resources["resources"]}
    except (Failure, KeyError, TypeError):
        return False


async def _discovered(client: Caller, path: str, kind: str) -> Json:
    answer = await client.call(Request(method="GET", path=path, subject=f"discovery of {path}"))
    return answer.body if answer.body.get("kind") == kind else {}
