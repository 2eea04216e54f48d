"""Every recorded EC2NodeClass, resolved against the recorded world: status, conditions and hash as upstream wrote them.

The record also has launches; those need the whole product and are compared elsewhere. Where we differ by intent, the
difference is named here with its reason, and a difference that vanishes fails the test too.
"""

import gzip
import json
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.node_class.conditions import UP_TO_DATE
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.api.aws.ec2_node_class import EC2NodeClass
from dovetail.api.validation import parse
from dovetail.model.values.json import Json
from testbed.cloud.server import CloudServer
from tests.adapters.aws.conftest import Stage
from tests.recorded import TRAFFIC
from worlds.aws import CLUSTER, ClassStore, open_adapter

DIFFERENT = {
    "role-missing": "a role that does not exist gives False RoleNotFound; upstream stays Unknown without a word",
    "ssm-refused": "an error of SSM gives False; upstream takes it for a missing parameter and stays Unknown",
    "ami-ssm": "the test bed's AWS holds us to the policies that we ship, which read AWS's own parameters alone",
    "windows-arm": "no image suits what the pools allow: False; upstream finds out at each launch",
    "windows2025-missing": "an alias without any parameter is False AMINotFound; upstream stays Unknown",
    "al2023-no-ssm": "the same",
    "userdata-al2023-bad": "user data that cannot be merged is False UserDataInvalid; upstream stays Unknown",
    "userdata-bottlerocket-not-toml": "the same",
}
NOT_STARTED = {"start-no-ec2", "zonal-shift-unregistered"}  # upstream refused to start: there is no class to compare


def recorded() -> Iterator[Json]:
    for file in [file for folder in TRAFFIC for file in sorted(folder.glob("*.jsonl.gz"))]:
        with gzip.open(file, "rt") as lines:
            for line in lines:
                case: Json = json.loads(line)
                if _expected(case) and case["id"] not in NOT_STARTED:
                    yield case


def _expected(case: Json) -> list[Json]:
    found = [o for o in case["expected"]["objects"] if o["phase"] == "class" and o.get("nodeClasses")]
    classes: list[Json] = found[-1]["nodeClasses"] if found else []
    return classes


def compared(status: Json) -> Json:
    conditions = sorted(
        (c["type"], c["status"], c["reason"], c["observedGeneration"])
        for c in status["conditions"]
        if c["type"] != UP_TO_DATE
    )
    reservations = [
        {key: value for key, value in each.items() if key != "endTime"}
        for each in status.get("capacityReservations") or ()
    ]
    return {
        "conditions": conditions,
        "amis": sorted(json.dumps(ami, sort_keys=True) for ami in status.get("amis") or ()),
        "subnets": status.get("subnets"),
        "securityGroups": status.get("securityGroups"),
        "capacityReservations": reservations,
        "hasProfile": bool(status.get("instanceProfile")),
    }


def stage_of(case: Json, server: CloudServer, calls: Calls) -> Stage:
    server.control("POST", "reset")
    server.control("PATCH", "world", {"checkInstanceProfiles": False})  # the recorded cloud took any
    if case["input"]["world"]:
        server.control("PATCH", "world", case["input"]["world"])
    env, store = case["input"]["env"], ClassStore()
    facts = replace(CLUSTER, dns_address="") if case["id"] == "no-kube-dns" else CLUSTER
    adapter = open_adapter(
        server,
        store,
        calls,
        facts,
        expressions="NodeClassCEL=true" in env.get("AWS_FEATURE_GATES", ""),
        reserved_capacity="ReservedCapacity=false" not in env.get("FEATURE_GATES", ""),
        isolated_vpc=env.get("ISOLATED_VPC") == "true",
    )
    for given in case["input"]["nodeClasses"]:
        name = given["metadata"]["name"]
        # As the API server stores it: defaults filled in, the keys of an open object sorted.
        spec = {**given["spec"], "metadataOptions": parse(EC2NodeClass, given).as_object()["spec"]["metadataOptions"]}
        meta = {"name": name, "uid": str(uuid.uuid4()), "generation": 1}
        store._store(name, {"metadata": meta, "spec": json.loads(json.dumps(spec, sort_keys=True))})
    pools = [parse_node_pool({**p, "metadata": {**p["metadata"], "uid": "u"}}) for p in case["input"]["nodePools"]]
    return Stage(server=server, classes=store, adapter=adapter, since=0, pools=pools)


@pytest.mark.soak
async def test_every_recorded_class_resolves_as_upstream_s_does(aws_server: CloudServer, aws_calls: Calls) -> None:
    differing: set[str] = set()
    differences: list[str] = []
    for case in recorded():
        stage = stage_of(case, aws_server, aws_calls)
        for _ in range(4):  # calls that were declared to fail once or twice
            await stage.upkeep.keep()
            for due in stage.upkeep._due.values():
                due.at = 0.0 if due.retry > 1.0 else due.at
        for wanted in _expected(case):
            ours = stage.classes.objects[wanted["metadata"]["name"]]
            hashes = "karpenter.k8s.aws/ec2nodeclass-hash"
            same = compared(ours["status"]) == compared(wanted["status"])
            same &= ours["metadata"]["annotations"][hashes] == wanted["metadata"]["annotations"][hashes]
            if not same:
                differing.add(case["id"])
                differences.append(f"{case['id']}: {compared(ours['status'])} is not {compared(wanted['status'])}")

    assert differing == set(DIFFERENT), "\n".join(differences)
