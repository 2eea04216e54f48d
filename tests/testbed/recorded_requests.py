"""Recorded calls of upstream's provider as requests: each is sent again, and its answer laid beside the recorded one.

What was given by the recorder as a placeholder gets a value of its own; a template's id is the one that this server
gave. What the recording has of an answer is compared: the error's code, and of a fleet what it launched and refused.
"""

import base64
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

from botocore import xform_name
from botocore.exceptions import ClientError

from acceptance.traffic.cases import Case
from dovetail.model.values.json import Json
from tests.testbed.aws_clients import Aws

NAMED: Final = re.compile(r"<(template|profile|claim|uid)-(\d+)>")
TEMPLATE_ID: Final = re.compile(r"<template-id-(\d+)>")
MOST_TIMES: Final = 12  # of calls that the recording folds together


class Requests:
    """The calls of one case, sent to one server."""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws
        self._clients: dict[str, Any] = {}
        self._tokens = count(1)
        self._templates: list[str] = []  # ids that were given
        self._received: list[str] = []  # handles of messages
        self.sent: Counter[str] = Counter()

    def differences(self, case: Case) -> Iterator[str]:
        """What is answered otherwise than was recorded, in the order of the phases."""
        steps = dict(zip((f"step{number}" for number in count(1)), case.steps, strict=False))
        for name, phase in case.phases.items():
            self._before(steps.get(name, {}))
            for call in phase["calls"]:
                for _ in range(min(call.get("times", 1), MOST_TIMES)):
                    if words := self._difference(call):
                        yield f"{name}: {call['op']}: {words}"

    def _before(self, step: Json) -> None:
        control = self._aws.server.control
        if change := step.get("world"):
            control("PATCH", "world", change)
        if change := step.get("instance"):
            control("PATCH", "instances/first", change)
        if added := step.get("addInstance"):
            control("POST", "instances", added)
        if message := step.get("sqs"):
            control("POST", "sqs", {"body": message if isinstance(message, str) else json.dumps(message)})

    def _difference(self, call: Json) -> str:
        self.sent[call["op"]] += 1
        try:
            answer, error = self._send(call), None
        except ClientError as refused:
            said: Json = dict(refused.response["Error"])
            answer, error = {}, said.get("QueryErrorCode") or said["Code"]
        if error != call.get("error"):
            return f"{error} where {call.get('error')} was recorded"
        if call["op"] != "CreateFleet" or "output" not in call:
            return ""
        have, want = launched_and_refused(answer), call["output"]
        return "" if have == as_compared(want) else f"{have} where {as_compared(want)} was recorded"

    def _send(self, call: Json) -> Json:
        service = call["service"]
        if service not in self._clients:
            self._clients[service] = self._aws.client(service)
        ask, given = getattr(self._clients[service], xform_name(call["op"])), self._filled(call["input"])
        if call["op"] == "DeleteMessage":
            given["ReceiptHandle"] = self._handle(given["QueueUrl"])
        answer: Json = ask(**given)
        if call["op"] == "CreateLaunchTemplate":
            self._templates.append(answer["LaunchTemplate"]["LaunchTemplateId"])
        self._received += [each["ReceiptHandle"] for each in answer.get("Messages") or ()]
        return answer

    def _handle(self, queue: str) -> str:
        """Of a message that came, perhaps in a call that the recording left out."""
        if not self._received:
            answer = self._clients["sqs"].receive_message(QueueUrl=queue)
            self._received += [each["ReceiptHandle"] for each in answer.get("Messages") or ()]
        return self._received.pop(0)

    def _filled(self, given: Any, key: str = "") -> Any:
        if isinstance(given, dict):
            return {name: self._filled(value, name) for name, value in given.items()}
        if isinstance(given, list):
            return [self._filled(value, key) for value in given]
        if key == "WaitTimeSeconds":
            return 0
        if key == "UserData":
            return base64.b64encode(given.encode()).decode()
        if not isinstance(given, str):
            return given
        if given == "<time>":
            return datetime.fromtimestamp(time.time() - 3600, UTC)
        if given == "<token>":
            return f"token-{next(self._tokens)}"
        if found := TEMPLATE_ID.fullmatch(given):  # of those that were made
            return self._templates[(int(found[1]) - 1) % len(self._templates)]
        return NAMED.sub(r"\1-\2", given.replace("<endpoint>", self._aws.server.endpoint))


def launched_and_refused(answer: Json) -> Json:
    """Of a fleet's answer, in the recording's form."""
    return as_compared(
        {
            "instances": [
                {"ids": each["InstanceIds"], "type": each["InstanceType"], "zone": zone_of(each)}
                for each in answer["Instances"]
            ],
            "errors": [
                {"code": each["ErrorCode"], "type": override_of(each)["InstanceType"], "zone": zone_of(each)}
                for each in answer["Errors"]
            ],
        }
    )


def override_of(entry: Json) -> Json:
    overrides: Json = entry["LaunchTemplateAndOverrides"]["Overrides"]
    return overrides


def zone_of(entry: Json) -> str:
    return str(override_of(entry)["AvailabilityZone"])


def as_compared(output: Json) -> Json:
    """How many of which type where, and what was refused there: ids are in the order of launches anyway."""
    return {
        "launched": [(len(each["ids"]), each["type"], each["zone"]) for each in output.get("instances") or ()],
        "refused": [(each["code"], each["type"], each["zone"]) for each in output.get("errors") or ()],
    }
