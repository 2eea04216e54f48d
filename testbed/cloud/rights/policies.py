"""The policies of deploy/aws, with their placeholders filled for one cluster."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from testbed.cloud.json_object import Json
from testbed.cloud.settings import ACCOUNT, CloudSettings

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "aws" / "policies"
PLACEHOLDER = re.compile(r"\$\{([\w:]+)\}")


def values_for(settings: CloudSettings, region: str) -> dict[str, str]:
    """As filled in by a user who has the node role of a Karpenter stack."""
    return {
        "AWS::Partition": "aws",
        "AWS::Region": region,
        "AWS::AccountId": ACCOUNT,
        "ClusterName": settings.cluster_name,
        "NodeRole": f"KarpenterNodeRole-{settings.cluster_name}",
        "Queue": settings.queue_name,
        "RecordBucket": "dovetail-record",
    }


def statements(values: Mapping[str, str]) -> list[Json]:
    """Every statement of all policies."""
    found: list[Json] = []
    for file in sorted(FOLDER.glob("*.json")):
        text = PLACEHOLDER.sub(lambda placeholder: values[placeholder[1]], file.read_text(encoding="utf-8"))
        found += json.loads(text)["Statement"]
    return found
