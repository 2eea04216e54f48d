"""Facts of the instance types that exist.

The facts come from moto's catalogue, trimmed to the types of the world: reading all 1395 takes 0.2 s once, but
answering DescribeInstanceTypes with them took moto 3-7 s a call (MOT-16). A world may still declare all of them.
"""

import gzip
import json
from importlib.resources import files

from testbed.cloud.json_object import Json


def read_types(names: list[str]) -> dict[str, Json]:
    """The named types as DescribeInstanceTypes gives them, in the order of their names."""
    packed = files("moto").joinpath("ec2/resources/instance_types.json.gz").read_bytes()
    everything: dict[str, Json] = json.loads(gzip.decompress(packed))
    unknown = sorted(set(names) - everything.keys())
    if unknown:
        raise ValueError(f"the world offers instance types that the catalogue does not know: {', '.join(unknown)}")
    return {name: everything[name] for name in sorted(set(names))}


class Catalogue:
    """The facts of the types that the world offers; reads the big file only for names not seen before."""

    def __init__(self) -> None:
        self._known: dict[str, Json] = {}

    def types(self, names: list[str]) -> dict[str, Json]:
        """Facts by name, sorted."""
        if not set(names) <= self._known.keys():
            self._known |= read_types(names)
        return {name: self._known[name] for name in sorted(set(names))}

    def facts(self, name: str) -> Json | None:
        """One type's facts, if it was ever offered."""
        return self._known.get(name)


def architecture(facts: Json) -> str:
    """The first architecture that decides which image fits."""
    first: str = facts["ProcessorInfo"]["SupportedArchitectures"][0]
    return "x86_64" if first == "i386" else first
