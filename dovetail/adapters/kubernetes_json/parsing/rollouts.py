"""NodeRollouts: JSON of the API in, dovetail.model out.

An error makes a `fault`; the object then holds its NodePool or, if not even that can be read, every NodePool.
"""

from dataclasses import replace
from typing import Any

from dovetail.adapters.kubernetes_json.parsing.declared import Fault, checked, fields_in, metadata_of, read_or, words_of
from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS
from dovetail.adapters.kubernetes_json.parsing.reading import reading, text_of
from dovetail.api.own.node_rollout import NodeRolloutSpec
from dovetail.api.validation import InvalidSpec
from dovetail.model import names
from dovetail.model.own.rollouts import NODES, NodesGate, Rollout, RolloutState, RolloutStatus
from dovetail.model.own.stable_images import NO_IMAGE
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.quoting import one_line


def parse_rollout(raw: ReadOnlyJson) -> Rollout:
    with reading("NodeRollout", raw):
        return _rollout(raw)


def _rollout(raw: ReadOnlyJson) -> Rollout:
    spec, said = raw.get("spec") or {}, dict[str, Any]()
    try:
        said = fields_in(Rollout, checked(NodeRolloutSpec, spec))
    except (InvalidSpec, *RAW_FAULTS) as error:
        said = {"pool": read_or(lambda: text_of(spec["nodePool"]), ""), "fault": words_of(error)}
    said["status"] = _status(raw.get("status"))
    said["fault"] = "; ".join(filter(None, (said.get("fault"), said["status"].fault)))
    said["policy"] = read_or(lambda: text_of((raw["metadata"].get("annotations") or {}).get(names.POLICY) or ""), "")
    return Rollout(**said, **metadata_of(raw["metadata"]))


def _status(raw: Any) -> RolloutStatus:
    """Part by part. Where one cannot be read, the others are what they are, and the roll-out stands still; where it is
    the state, a target that has failed is refused still."""
    faults: list[Fault] = []
    said = fields_in(RolloutStatus, raw, faults)
    verdicts = said.pop("asked", ())
    nodes = next((each for each in verdicts if each.name == NODES), None)
    if nodes is not None:
        said["gate"] = NodesGate(result=nodes.result, since=nodes.since, message=nodes.message, asked=nodes.asked)
    stable = said.get("stable")
    if stable is not None and not stable.images:
        said["stable"] = replace(stable, why_not=stable.why_not or NO_IMAGE)
    if faults and "failure" in said:
        said.setdefault("state", RolloutState.FAILED)
    fault = one_line("; ".join(dict.fromkeys(f"status{each}" for each in faults)))
    asked = tuple(each for each in verdicts if each.name != NODES)
    return RolloutStatus(**said, asked=asked, fault=fault)
