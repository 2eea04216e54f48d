"""The comparison of recorded traffic, with its named differences, notices whatever is wrong with a play.

The plays were really made (tests/acceptance/plays) and agree with their recordings. Each is spoiled in one way here: a
rule of comparison or a named difference that reaches further than its reason lets one of them through.
"""

import copy
import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from acceptance.traffic.cases import Case
from acceptance.traffic.named import Named, read_named
from acceptance.traffic.playing import Played, kept
from acceptance.traffic.run import judge
from dovetail.model import names
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.values.json import Json
from tests.acceptance.spoiling import (
    Spoil,
    added,
    calls,
    changed,
    doubled,
    each_condition,
    each_event,
    each_object,
    event,
    no_event,
    no_object,
    no_transition,
    phase,
    repeated,
    together,
    without,
)
from tests.recorded.test_aws_traffic import recorded

pytestmark = pytest.mark.slow

PLAYS: Final = {
    file.name.removesuffix(".json.gz"): file for file in sorted((Path(__file__).parent / "plays").glob("*.gz"))
}


@cache
def _bytes(name: str) -> bytes:
    return gzip.decompress(PLAYS[name].read_bytes())


def play_of(name: str, folder: Path) -> Played:
    """A play as it was made; each time anew, to be spoiled."""
    file = folder / "played.json"
    file.write_bytes(_bytes(name))
    return kept(file)


@cache
def _judged_by() -> tuple[dict[str, Case], list[Named]]:
    """The recordings of the plays, and the list of named differences, read once."""
    wanted = {name.replace("--", "/") for name in PLAYS}
    return {name: case for name, case in recorded().items() if name in wanted}, read_named()


def differs(name: str, played: Played) -> list[str]:
    """What differs and is not meant."""
    cases, named = _judged_by()
    return [each.line() for each in judge(cases[name.replace("--", "/")], played, named)[0]]


def launching_fleet(played: Played) -> Json:
    """The first fleet that brought an instance."""
    return next(each for each in calls(played, "CreateFleet", "launch") if each["output"]["instances"])


def capacity(number: int) -> Spoil:
    def spoil(played: Played) -> None:
        entry = launching_fleet(played)
        entry["input"]["TargetCapacitySpecification"]["TotalTargetCapacity"] = number
        entry["output"]["instances"][0]["ids"] = [f"i-9{each}" for each in range(number)]

    return spoil


def fleets(number: int, change: Callable[[Json, int], object] = lambda entry, number: None) -> Spoil:
    """As many fleets more that bring an instance each."""

    def spoil(played: Played) -> None:
        for each in range(number):
            entry = copy.deepcopy(launching_fleet(played))
            change(entry, each)
            phase(played, "launch").entries.append(entry)

    return spoil


def other_template(entry: Json, number: int) -> None:
    for config in entry["input"]["LaunchTemplateConfigs"]:
        config["LaunchTemplateSpecification"]["LaunchTemplateName"] += str(number)


def nonsense(condition: Json) -> None:
    condition.update(status="True", reason="Nonsense")


def first_override(entry: Json) -> Json:
    found: Json = entry["input"]["LaunchTemplateConfigs"][0]["Overrides"][0]
    return found


def used_template(played: Played) -> None:
    name = calls(played, "CreateFleet", "launch")[0]["input"]["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]
    added("DeleteLaunchTemplate", {"LaunchTemplateName": name["LaunchTemplateName"]}, "launch")(played)


def stands(played: Played) -> None:
    """As if a node that had gone were still there at the end."""
    before = phase(played, "launch").objects["nodeClaims"]
    phase(played, "step1").objects["nodeClaims"] = copy.deepcopy(before)


def fifty_names(played: Played) -> None:
    for number in range(50):
        names = [f"karpenter.k8s.aws/{number}"]
        added("DescribeLaunchTemplates", {"LaunchTemplateNames": names}, "step2")(played)


def slow(played: Played) -> None:
    """As if the phases had been as long as upstream's, with nothing read in them."""
    for each in list(played.phases):
        if each.name.startswith("step"):
            place = played.phases.index(each)
            played.phases[place] = type(each)(name=each.name, seconds=120.0, entries=each.entries, objects=each.objects)


def not_offered(played: Played, subnet: str) -> None:
    for entry in calls(played, "CreateFleet", "launch"):
        for config in entry["input"]["LaunchTemplateConfigs"]:
            config["Overrides"] = [each for each in config["Overrides"] if each["SubnetId"] != subnet]


def again_and_again(operation: str, within: str) -> Spoil:
    """A question that was asked once in the play is asked fifty times in one phase."""

    def spoil(played: Played) -> None:
        entry = calls(played, operation)[0]
        phase(played, within).entries.extend(copy.deepcopy(entry) for _ in range(50))

    return spoil


def labelled(kind: str, key: str, value: str) -> Spoil:
    """Every object of a kind with another value of a label."""
    return each_object(kind, lambda body: body["metadata"]["labels"].update({key: value}))


ZONE: Final = "topology.kubernetes.io/zone"
ZONE_ID: Final = "topology.k8s.aws/zone-id"
TAG: Final = "dovetail.sh/cluster-uid"
UID: Final = "5f0c2c46-6c1f-4b0e-9a35-0d6f0d1b7c11"


def tag_of(value: str, operation: str, *kinds: str) -> Spoil:
    """The tag with the cluster's UID on what such calls make, or another value of it."""

    def spoil(played: Played) -> None:
        for entry in calls(played, operation):
            for each in entry["input"]["TagSpecifications"]:
                if each["ResourceType"] in kinds:
                    each["Tags"].append({"Key": TAG, "Value": value})

    return spoil


SLIPS: Final = {
    "del-two": "lifecycle--del-two",
    "spot": "interruption--sqs-spot",
    "drift": "drift--drift-hash",
    "role": "drift--drift-role",
    "full": "failures--err-InsufficientFreeAddressesInSubnet",
    "short": "class-fields--fleet-short",
    "fallback": "failures--ice-spot-fallback",
    "unauthorised": "failures--err-unauth-inline",
    "missing": "class-fields--role-missing",
    "groups": "class-fields--no-groups",
    "basic": "launches--basic",
    "restart": "settings--restart",
    "shift": "lifecycle--zonal-shift-later",
    "empty": "class-fields--subnet-zero",
    "idle": "lifecycle--del-class-idle",
    "vanished": "lifecycle--vanished",
    "userdata": "images--userdata-bottlerocket-not-toml",
}
AMI: Final = "AMIsReady"

SPOILED: Final[dict[str, tuple[str, Spoil]]] = {
    # calls
    "thirty fleets more": ("full", fleets(30)),
    "thirty fleets more that bring nothing": ("full", repeated("CreateFleet", 30, "launch")),
    "one fleet more": ("full", fleets(1)),
    "thirty fleets more from other templates": ("full", fleets(30, other_template)),
    "thirty fleets where one brings few": ("short", fleets(30)),
    "fifty look-ups of one template": ("basic", repeated("DescribeLaunchTemplates", 50, "launch")),
    "a fleet for thirty": ("full", capacity(30)),
    "a fleet for thirty where one brings few": ("short", capacity(30)),
    "a fleet for two": ("basic", capacity(2)),
    "no fleet": ("basic", without("CreateFleet")),
    "a fleet of no cluster": ("basic", tag_of("", "CreateFleet", "instance")),
    "a fleet of a cluster by its name": ("basic", tag_of("dovetail", "CreateFleet", "instance", "volume", "fleet")),
    "a template of one cluster": ("basic", tag_of(UID, "CreateLaunchTemplate", "launch-template")),
    "an instance that is tagged with its cluster after its launch": (
        "basic",
        added(
            "CreateTags", {"Tags": [{"Key": "dovetail.sh/cluster-uid", "Value": UID}], "Resources": ["i-1"]}, "launch"
        ),
    ),
    "no dry run": ("basic", without("RunInstances", dry=True)),
    "another price": ("basic", changed("CreateFleet", lambda entry: first_override(entry).update(Priority=9.9))),
    "another subnet": ("basic", changed("CreateFleet", lambda e: first_override(e).update(SubnetId="subnet-0z"))),
    "spot in the place of on-demand": (
        "basic",
        changed(
            "CreateFleet",
            lambda entry: entry["input"]["TargetCapacitySpecification"].update(DefaultTargetCapacityType="spot"),
        ),
    ),
    "fifty look-ups of any templates in a step": ("spot", fifty_names),
    "fifty look-ups after a restart": (
        "restart",
        added("DescribeLaunchTemplates", {"LaunchTemplateNames": ["x"]}, "step2"),
    ),
    "a template that is used is deleted": ("basic", used_template),
    "no template is looked for": ("basic", without("DescribeLaunchTemplates")),
    "a template is made twice": ("basic", repeated("CreateLaunchTemplate", 1, "launch")),
    "the account is asked for in the midst of it": ("del-two", added("GetCallerIdentity", {}, "step1")),
    "ten profiles more are asked for": ("basic", added("GetInstanceProfile", {"InstanceProfileName": "x"}, "launch")),
    "two profiles more are asked for in a step": (
        "role",
        together(*(added("GetInstanceProfile", {"InstanceProfileName": f"x{n}"}, "step1") for n in range(2))),
    ),
    "a second profile": ("basic", repeated("CreateInstanceProfile", 1, "class")),
    "terminated five times": ("del-two", repeated("TerminateInstances", 4, "step1")),
    "never terminated": ("del-two", without("TerminateInstances")),
    "another instance is terminated, too": ("del-two", added("TerminateInstances", {"InstanceIds": ["i-1"]}, "step1")),
    "terminated in a launch": (
        "basic",
        added("TerminateInstances", {"InstanceIds": ["i-00000000000000001"]}, "launch"),
    ),
    "the message stays in the queue": ("spot", without("DeleteMessage")),
    "no tags": ("basic", without("CreateTags")),
    "tagged twice": ("basic", repeated("CreateTags", 1, "launch")),
    "subnets are never read": ("basic", without("DescribeSubnets")),
    "other subnets are read": ("basic", added("DescribeSubnets", {"SubnetIds": ["subnet-0z"]}, "launch")),
    "nobody asks whether the instance is gone": ("del-two", without("DescribeInstances")),
    "nothing is refreshed in two minutes": ("vanished", slow),
    "a subnet with room is not offered": ("empty", lambda played: not_offered(played, "subnet-0b")),
    "no fleet where one brings few": ("short", without("CreateFleet")),
    "images are read without end": ("vanished", again_and_again("DescribeImages", "step1")),
    "subnets are read without end": ("vanished", again_and_again("DescribeSubnets", "step1")),
    "the account is asked for without end": (
        "basic",
        together(*(added("GetCallerIdentity", {}, "start") for _ in range(50))),
    ),
    "no profile is asked for where the role is missing": ("missing", without("GetInstanceProfile")),
    "no template is collected": ("idle", without("DeleteLaunchTemplate")),
    "one instance is named twice": (
        "del-two",
        changed("TerminateInstances", lambda e: e["input"].update(InstanceIds=e["input"]["InstanceIds"] * 2)),
    ),
    # Events
    "no DisruptionBlocked": ("del-two", no_event("DisruptionBlocked")),
    "no DisruptionBlocked of claims": ("spot", no_event("DisruptionBlocked", "NodeClaim")),
    "DisruptionBlocked of a node that stays": (
        "basic",
        event("launch", "Normal DisruptionBlocked Node/$node", "Node is deleting or marked for deletion"),
    ),
    "DisruptionBlocked for a cause that nobody knows": (
        "basic",
        event("launch", "Normal DisruptionBlocked Node/$node", "Nonsense"),
    ),
    "DisruptionBlocked without end": (
        "spot",
        together(
            *(event("launch", "Normal DisruptionBlocked Node/$node", "Node isn't initialized") for _ in range(50))
        ),
    ),
    "DisruptionBlocked of a node that never was": (
        "basic",
        event("launch", "Normal DisruptionBlocked Node/other", "Node isn't initialized"),
    ),
    "DisruptionBlocked by a pod that asks for nothing": (
        "basic",
        event(
            "launch", "Normal DisruptionBlocked Node/$node", 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=p)'
        ),
    ),
    "no pod is nominated where a fleet brings few": ("short", no_event("Nominated")),
    "a refusal that is told without end": (
        "groups",
        together(*(event("class", "Warning SecurityGroupsNotFound EC2NodeClass/default", "x") for _ in range(50))),
    ),
    "a pool that there is not is told to be ready": (
        "basic",
        event(
            "launch",
            "Normal Ready NodePool/other",
            "Status condition transitioned, Type: Ready, Status: Unknown -> True, Reason: Ready",
        ),
    ),
    "Unconsolidatable for a pool that is none": (
        "basic",
        event("launch", "Normal Unconsolidatable Node/$node", 'NodePool "other" has consolidation disabled'),
    ),
    "a replacement for a reason that there is not": (
        "drift",
        each_object(
            "nodeClaims", lambda b: b["metadata"]["annotations"].update(with_memory({}, replacement_for="Nonsense"))
        ),
    ),
    "an end for a reason that there is not": (
        "basic",
        each_object("nodeClaims", lambda b: b["metadata"]["annotations"].update({names.ENDED_BECAUSE: "Nonsense"})),
    ),
    "another node and no interruption": ("drift", doubled("nodes", "step1")),
    "no Finalized": ("del-two", no_event("Finalized")),
    "no Finalized of nodes": ("spot", no_event("Finalized", "Node")),
    "no Finalized of the class": ("idle", no_event("Finalized", "EC2NodeClass")),
    "Finalized of a claim that stays": ("basic", event("launch", "Normal Finalized NodeClaim/$claim")),
    "Finalized, and it is still there": ("del-two", stands),
    "a false alarm on a healthy class": ("basic", event("class", "Warning SubnetsNotFound EC2NodeClass/default")),
    "a false alarm on a class that has another fault": (
        "groups",
        event("class", "Warning SubnetsNotFound EC2NodeClass/default"),
    ),
    "a pool is told that its class leaves, and it stays": (
        "basic",
        event("launch", "Warning FailedResolvingNodeClass NodePool/default"),
    ),
    "a false alarm of a shift": ("basic", event("launch", "Warning ZonalShiftActive NodePool/default")),
    "a step that fails by itself": (
        "shift",
        event(
            "step2", "Warning StepFailing NodeClaim/$claim", "fails: ec2:TerminateInstances: traffic is shifted away"
        ),
    ),
    "a step that fails for an error that AWS did not answer": (
        "unauthorised",
        each_event("StepFailing", lambda body: body.update(message="fails (Throttled): RequestLimitExceeded: x")),
    ),
    "a shift of another zone": (
        "shift",
        each_event("ZonalShiftActive", lambda body: body.update(message="away from us-west-2c")),
    ),
    "a shift that is over and never told": ("shift", no_event("ZonalShiftCleared")),
    "evicted for another reason": (
        "drift",
        each_event("Evicted", lambda body: body.update(message="Evicted pod: Empty")),
    ),
    "no SpotInterrupted": ("spot", no_event("SpotInterrupted")),
    "SpotInterrupted of nodes only": ("spot", no_event("SpotInterrupted", "NodeClaim")),
    "no shortage is told": ("fallback", no_event("InsufficientCapacityError")),
    "a shortage is told without its code": (
        "fallback",
        each_event("InsufficientCapacityError", lambda body: body.update(message="nonsense")),
    ),
    "no pod is nominated": ("basic", no_event("Nominated")),
    "another pod is nominated": ("basic", event("launch", "Normal Nominated Pod/other")),
    "a disruption that is never announced": ("drift", no_event("DisruptionTerminating")),
    "a claim whose readiness is never told": ("basic", no_transition("NodeClaim")),
    "a claim that is told to have ceased to be ready": (
        "basic",
        event(
            "launch",
            "Normal Ready NodeClaim/$claim",
            "Status condition transitioned, Type: Ready, Status: True -> False, Reason: x",
        ),
    ),
    # objects
    "conditions of claims are nonsense": ("basic", each_condition("nodeClaims", nonsense)),
    "a launch that failed for another reason": (
        "unauthorised",
        each_condition("nodeClaims", lambda condition: condition.update(reason="LaunchFailed"), "Launched"),
    ),
    "a claim that contradicts its node": (
        "basic",
        each_object(
            "nodeClaims",
            lambda body: body["status"]["conditions"].append(
                {"type": "ConsistentStateFound", "status": "False", "reason": "x"}
            ),
        ),
    ),
    "a throttle is read as a refusal": (
        "missing",
        each_condition(
            "nodeClasses", lambda c: c.update(status="False", reason="RequestLimitExceeded"), "InstanceProfileReady"
        ),
    ),
    "a class that is refused without cause": (
        "basic",
        each_condition("nodeClasses", lambda c: c.update(status="False", reason="AMINotFound"), AMI),
    ),
    "user data is refused for another part": (
        "userdata",
        each_condition("nodeClasses", lambda c: c.update(status="False", reason="AMINotFound"), AMI),
    ),
    "a class refused for another reason": (
        "groups",
        each_condition("nodeClasses", lambda c: c.update(reason="SubnetsNotFound"), "SecurityGroupsReady"),
    ),
    "another hash": (
        "basic",
        each_object(
            "nodeClasses", lambda b: b["metadata"]["annotations"].update({"karpenter.k8s.aws/ec2nodeclass-hash": "1"})
        ),
    ),
    "a claim too many": ("full", doubled("nodeClaims", "launch")),
    "thirty nodes too many": ("full", doubled("nodes", "launch", 30)),
    "thirty instances too many": ("full", doubled("instances", "launch", 30)),
    "a claim too few": ("basic", no_object("nodeClaims", "launch")),
    "a claim without its finalizer": (
        "basic",
        each_object("nodeClaims", lambda body: body["metadata"].pop("finalizers")),
    ),
    "a claim that says it is larger": (
        "basic",
        each_object("nodeClaims", lambda body: body["status"]["capacity"].update(cpu="96")),
    ),
    "a claim that says another zone": (
        "basic",
        each_object(
            "nodeClaims", lambda b: b["metadata"]["labels"].update({"topology.kubernetes.io/zone": "us-west-2c"})
        ),
    ),
    "claims in a zone that there is not, where a fleet brings few": ("short", labelled("nodeClaims", ZONE, "us-x-1z")),
    "nodes in another zone than their claims": ("short", labelled("nodes", ZONE, "us-west-2c")),
    "claims in a zone that there is not, beside an empty subnet": (
        "empty",
        labelled("nodeClaims", ZONE, "us-west-2z"),
    ),
    "nodes with another zone's id": ("empty", labelled("nodes", ZONE_ID, "usw2-az9")),
    "nodes of an instance in another zone": (
        "empty",
        each_object("nodes", lambda body: body["spec"].update(providerID="aws:///us-west-2z/i-0")),
    ),
    "instances in another zone than their fleet's": (
        "empty",
        each_object("instances", lambda body: body.update(zone="us-west-2z")),
    ),
    "instances in a subnet that no class knows": (
        "empty",
        each_object("instances", lambda body: body.update(subnet="subnet-0z")),
    ),
    "an instance too few beside an empty subnet": ("empty", no_object("instances", "launch")),
    "a claim that is consistent for another reason": (
        "spot",
        each_condition("nodeClaims", lambda c: c.update(reason="Nonsense"), "ConsistentStateFound"),
    ),
    "a zone that does not follow from the empty subnet": (
        "empty",
        each_object("nodes", lambda b: b["metadata"]["labels"].pop("topology.kubernetes.io/zone")),
    ),
    "a node that lacks a label": (
        "basic",
        each_object("nodes", lambda b: b["metadata"]["labels"].pop("karpenter.sh/nodepool")),
    ),
    "a node that keeps a taint": (
        "basic",
        each_object(
            "nodes", lambda b: b["spec"].update(taints=[{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}])
        ),
    ),
    "an instance without its pool's tag": (
        "basic",
        each_object("instances", lambda b: b["tags"].pop("karpenter.sh/nodepool")),
    ),
    "an instance that runs on": ("del-two", each_object("instances", lambda body: body.update(state="running"))),
    "a pod that waits": ("basic", each_object("pods", lambda body: body.update(node=None, phase="Pending"))),
    # the play as a whole
    "a worker that did not start": ("basic", lambda played: setattr(played, "started", False)),
    "a step that was not played": ("del-two", lambda played: played.phases.pop()),
    "an object that was refused": ("basic", lambda played: played.rejected.append({"kind": "EC2NodeClass"})),
    "terminated after its claim had gone": (
        "del-two",
        lambda played: played.vanished.update(dict.fromkeys(played.vanished, 0.0)),
    ),
    "tagged before its node was known": (
        "basic",
        lambda played: played.nodes_seen.update(dict.fromkeys(played.nodes_seen, 9e9)),
    ),
}


@pytest.mark.parametrize("name", PLAYS)
def test_a_play_agrees_with_its_recording(name: str, tmp_path: Path) -> None:
    assert differs(name, play_of(name, tmp_path)) == []


def test_the_cluster_s_uid_on_what_a_launch_makes_is_meant(tmp_path: Path) -> None:
    """Decision record 104."""
    played = play_of(SLIPS["basic"], tmp_path)

    tag_of(UID, "CreateFleet", "instance", "volume", "fleet")(played)

    assert differs(SLIPS["basic"], played) == []


@pytest.mark.parametrize("way", SPOILED)
def test_a_spoiled_play_is_noticed(way: str, tmp_path: Path) -> None:
    short, spoil = SPOILED[way]
    played = play_of(SLIPS[short], tmp_path)

    spoil(played)

    assert differs(SLIPS[short], played)


def test_every_play_is_spoiled_and_every_spoiled_play_is_there() -> None:
    assert set(SLIPS.values()) == set(PLAYS)
    assert {short for short, _ in SPOILED.values()} == set(SLIPS)
    assert len(SPOILED) >= 30
