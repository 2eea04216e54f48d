"""Whether AWS would allow the calls of launches and terminations: EC2's dry runs, before an installation.

EC2 checks the rights first and the ids afterwards, so ids of nothing are enough: a refusal for missing rights means no,
and "the request would have succeeded" means yes. Any other answer (no such instance, for example) means neither,
because some of EC2's calls check the ids first. For these, IAM is asked how it evaluates the caller's policies for an
instance of this cluster, if the caller may ask that (`iam:SimulatePrincipalPolicy`, which no worker needs and the
shipped policies do not grant). Nothing is made.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import UNAUTHORISED
from dovetail.adapters.aws.tags import as_tags, tag_specification
from dovetail.model import names as core
from dovetail.ports.cloud import Rehearsed
from dovetail.ports.failures import Failure

NAME: Final = "dovetail-preflight"
_NO_IMAGE: Final = "ami-00000000000000000"
_NO_INSTANCE: Final = "i-00000000000000000"
_TYPE: Final = "m5.large"


class AwsRehearsal:
    """The calls of a launch and a termination, each as a dry run with the tags on which the policies insist."""

    def __init__(self, calls: Calls, cluster: str) -> None:
        self._calls, self._cluster = calls, cluster

    async def __call__(self) -> tuple[Rehearsed, ...]:
        """One after another: there are five."""
        found = [await self._one(call, parameters) for call, parameters in self._asked().items()]
        decided = await self._simulated([each.call for each in found if each.allowed is None])
        return tuple(_with_decision(each, decided.get(each.call, "")) for each in found)

    async def _simulated(self, calls: Sequence[str]) -> Mapping[str, str]:
        """IAM's decision on each of these calls; nothing if it gives none."""
        if not calls:
            return {}
        try:
            caller = str((await self._calls.call("sts", "GetCallerIdentity")).get("Arn", ""))
            answer = await self._calls.call(
                "iam",
                "SimulatePrincipalPolicy",
                PolicySourceArn=_principal(caller),
                ActionNames=list(calls),
                ContextEntries=[
                    {"ContextKeyName": f"aws:ResourceTag/{key}", "ContextKeyValues": [text], "ContextKeyType": "string"}
                    for key, text in self._tags().items()
                ],
            )
        except Failure:
            return {}
        return {
            str(each["EvalActionName"]): str(each["EvalDecision"]) for each in answer.get("EvaluationResults") or []
        }

    async def _one(self, call: str, parameters: Mapping[str, Any]) -> Rehearsed:
        denied = await self._calls.dry_run(call, **parameters)
        name = f"ec2:{call}"
        if denied is None:
            return Rehearsed(call=name, allowed=True)
        allowed = False if denied.code in UNAUTHORISED else None
        return Rehearsed(call=name, allowed=allowed, said=f"{denied.code}: {denied.message}")

    def _tags(self) -> dict[str, str]:
        return {
            names.owned_tag(self._cluster): "owned",
            names.CLUSTER_TAG: self._cluster,
            core.NODE_POOL: NAME,
            names.NODE_CLASS: NAME,
        }

    def _asked(self) -> dict[str, dict[str, Any]]:
        tags = self._tags()
        template = {"LaunchTemplateSpecification": {"LaunchTemplateName": NAME, "Version": "$Latest"}}
        return {
            "CreateLaunchTemplate": {
                "LaunchTemplateName": NAME,
                "LaunchTemplateData": {"ImageId": _NO_IMAGE},
                "TagSpecifications": [tag_specification("launch-template", tags)],
            },
            "CreateFleet": {
                "Type": "instant",
                "LaunchTemplateConfigs": [{**template, "Overrides": [{"InstanceType": _TYPE}]}],
                "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
                "TagSpecifications": [tag_specification(kind, tags) for kind in ("instance", "volume", "fleet")],
            },
            "RunInstances": {
                "ImageId": _NO_IMAGE,
                "InstanceType": _TYPE,
                "MinCount": 1,
                "MaxCount": 1,
                "TagSpecifications": [
                    tag_specification(kind, tags) for kind in ("instance", "volume", "network-interface")
                ],
            },
            "CreateTags": {"Resources": [_NO_INSTANCE], "Tags": as_tags({"Name": NAME})},
            "TerminateInstances": {"InstanceIds": [_NO_INSTANCE]},
        }


def _principal(caller: str) -> str:
    """Whose policies count: for a session those of its role."""
    return re.sub(r":sts::(\d+):assumed-role/([^/]+)/.*", r":iam::\1:role/\2", caller)


def _with_decision(found: Rehearsed, decision: str) -> Rehearsed:
    if not decision:
        return found
    return replace(found, allowed=decision == "allowed", said=f"IAM's simulation of the caller's policies: {decision}")
