"""botocore's descriptions of the services, cut down to the calls that are made.

EC2's alone describes hundreds of operations and documents every field, and takes 20 MB of a worker as long as it runs.
A service that is not listed here (STS, with which botocore finds credentials) is described in full.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
from botocore.loaders import JSONFileLoader, Loader

from dovetail.model.values.json import Json

# Every operation that the adapter calls. A client has no method for any other.
CALLED: Final[Mapping[str, frozenset[str]]] = {
    "ec2": frozenset(
        {
            "CreateFleet",
            "CreateLaunchTemplate",
            "CreateTags",
            "DeleteLaunchTemplate",
            "DescribeCapacityReservations",
            "DescribeImages",
            "DescribeInstanceStatus",
            "DescribeInstanceTypeOfferings",
            "DescribeInstanceTypes",
            "DescribeInstances",
            "DescribeLaunchTemplates",
            "DescribePlacementGroups",
            "DescribeSecurityGroups",
            "DescribeSpotPriceHistory",
            "DescribeSubnets",
            "RebootInstances",
            "RunInstances",
            "TerminateInstances",
        }
    ),
    "eks": frozenset({"DescribeCluster"}),
    "iam": frozenset(
        {
            "AddRoleToInstanceProfile",
            "CreateInstanceProfile",
            "DeleteInstanceProfile",
            "GetInstanceProfile",
            "ListInstanceProfiles",
            "RemoveRoleFromInstanceProfile",
            "SimulatePrincipalPolicy",
        }
    ),
    "ssm": frozenset({"GetParameter"}),
}

_DESCRIPTION: Final = "service-2"  # botocore's name for the file of a service's operations and shapes


def service_models() -> Loader:
    """From what a botocore session reads its data."""
    return Loader(file_loader=_CutDown())


class _CutDown(JSONFileLoader):
    """Read by orjson: botocore's own reader makes an OrderedDict of each object."""

    def _load_file(self, full_path: str, open_method: Any) -> Json | None:
        path = Path(full_path)
        if not path.is_file():
            return None
        with open_method(full_path, "rb") as file:
            found: Json = orjson.loads(file.read())
        service = path.parent.parent.name
        if service in CALLED and path.name.startswith(f"{_DESCRIPTION}.json"):
            return cut_down(found, CALLED[service])
        return found


def cut_down(description: Json, operations: frozenset[str]) -> Json:
    """These operations and every shape that they need, without the documentation."""
    kept: Json = {name: each for name, each in description["operations"].items() if name in operations}
    shapes: Json = {}
    wanted = list(_shapes_named(kept))
    while wanted:
        name = wanted.pop()
        if name not in shapes:
            shapes[name] = description["shapes"][name]
            wanted += _shapes_named(shapes[name])
    return {**description, "operations": _without_sentences(kept), "shapes": _without_sentences(shapes)}


def _shapes_named(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        for each in part:
            yield from _shapes_named(each)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key == "shape" and isinstance(value, str):
                yield value
            else:
                yield from _shapes_named(value)


def _without_sentences(part: Any) -> Any:
    """A member may itself be named documentation; that one is kept."""
    if isinstance(part, list):
        return [_without_sentences(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _without_sentences(value)
        for key, value in part.items()
        if key != "documentation" or not isinstance(value, str)
    }
