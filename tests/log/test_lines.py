"""Lines of the log: what programs find in them, that nothing from outside breaks them, and that all are listed."""

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dovetail.messages.orders import DeleteClaim
from dovetail.messages.plans import DisruptionCommand, PlannedPod, ProposedNode, Target
from dovetail.messages.requests import UnmarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.telemetry.log import arrivals, departures, words
from dovetail.telemetry.log.line import MOST_CHARACTERS, JsonLines, TextLines, step_fields
from dovetail.telemetry.log.saying import few, say
from tests.log import reference
from tests.log.patterns import PATTERNS, found_in
from tests.log.reference import ALL

CLASS = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
LABELS = {
    names.NODE_POOL: "web",
    names.INSTANCE_TYPE: "c5.large",
    names.ZONE: "eu-west-1a",
    names.CAPACITY_TYPE: "spot",
}
CLAIM = NodeClaim(
    name="web-1",
    uid="u1",
    labels=LABELS,
    node_class=CLASS,
    requests={"cpu": 1_500_000_000, "pods": 3},
    node_name="ip-10-0-0-1",
    provider_id="aws:///eu-west-1a/i-1",
    capacity={},
    allocatable={"cpu": 2_000_000_000},
)
TARGET = Target(
    claim="web-1",
    claim_uid="u1",
    node="ip-10-0-0-1",
    node_uid="n1",
    provider_id=CLAIM.provider_id,
    pool="web",
    pods=("p1", "p2"),
    capacity_type="spot",
)
PROPOSED = ProposedNode(
    pool="web",
    pool_uid="w",
    node_class=CLASS,
    requirements=(),
    type_list=0,
    pods=(PlannedPod(namespace="default", name="web-abc", uid="p1"),),
)
COMMAND = DisruptionCommand(reason="Drifted", method="drift", targets=(TARGET,), replacements=(PROPOSED,))
REF = ClaimRef(name="web-1", uid="u1")
UNMARK = UnmarkRequest(owner="c/disrupt/42", claims=(REF,), why="not on a Friday", rest="cancelled", reason="Drifted")


def delete(reason: str) -> DeleteClaim:
    return DeleteClaim(claim=REF, reason=reason, message="because", condition="Ready")


SAID: dict[str, Callable[[], None]] = {
    "found": lambda: arrivals.computed([PROPOSED], 0.0125),
    "apart": lambda: arrivals.prefer_apart(["default/web-1"]),
    "spread": lambda: arrivals.prefer_spread(["default/web-1"]),
    "created": lambda: arrivals.created(CLAIM, "provisioned", ("c5.large", "c5.xlarge")),
    "launched": lambda: arrivals.launched(CLAIM),
    "not launched": lambda: arrivals.launch_failed(CLAIM, "InsufficientCapacity", "no room"),
    "registered": lambda: arrivals.registered(CLAIM, "ip-10-0-0-1"),
    "overdue": lambda: arrivals.registration_overdue(CLAIM, 900.0),
    "initialized": lambda: arrivals.initialized(CLAIM, "ip-10-0-0-1"),
    "disrupting": lambda: departures.disrupting("c/disrupt/42", COMMAND, [TARGET], {"web-1": "c5.large"}),
    "undone": lambda: departures.undone(UNMARK),
    "tainted": lambda: departures.tainted("ip-10-0-0-1", "web-1"),
    "annotated": lambda: departures.annotated(CLAIM, "2026-01-01T00:00:00Z"),
    "drained": lambda: departures.drained(CLAIM),
    "terminated": lambda: departures.terminated_instance("web-1", CLAIM.provider_id),
    "node deleted": lambda: departures.deleted_node("ip-10-0-0-1", "web-1"),
    "claim deleted": lambda: departures.deleted_claim(CLAIM),
    "interrupted": lambda: departures.interrupted(CLAIM, "spot_interrupted"),
    "expired": lambda: departures.ordered(CLAIM, delete("expired")),
    "unhealthy": lambda: departures.ordered(CLAIM, delete("unhealthy")),
    "lost": lambda: departures.ordered(CLAIM, delete("garbage_collected")),
    "surplus": lambda: departures.ordered(CLAIM, delete("static_scale_down")),
    "never initialized": lambda: departures.ordered(CLAIM, delete("never_initialized")),
    "orphan": lambda: departures.orphan_terminated("aws:///eu-west-1a/i-2"),
}

Log = Callable[[], list[str]]


@pytest.fixture
def log() -> Iterator[Log]:
    """The lines that were written since, as JSON."""
    stream = io.StringIO()
    yield from _logging(stream, JsonLines("1.2.3"))


@pytest.fixture
def text() -> Iterator[Log]:
    """The same, as text for a terminal."""
    yield from _logging(io.StringIO(), TextLines())


def _logging(stream: io.StringIO, form: logging.Formatter) -> Iterator[Log]:
    handler, logger = logging.StreamHandler(stream), logging.getLogger("dovetail")
    handler.setFormatter(form)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield lambda: stream.getvalue().splitlines()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def test_every_line_of_the_list_is_written_with_exactly_its_fields(log: Log) -> None:
    for each in SAID.values():
        each()
    records = {record["message"]: record for record in map(json.loads, log())}
    assert sorted(records) == sorted(log_line.message for log_line in ALL)
    for log_line in ALL:
        fields = list(records[log_line.message])
        assert fields[:5] == ["level", "time", "logger", "message", "commit"]
        assert fields[len(fields) - len(log_line.fields) :] == list(log_line.fields), log_line.message


def test_a_reader_of_karpenters_log_finds_each_of_its_patterns(log: Log) -> None:
    token = step_fields.set({"workflow_id": "c/claim/web-1", "trace_id": "0" * 32})
    for each in SAID.values():
        each()
    step_fields.reset(token)
    found = {json.loads(line)["message"]: found_in(line) for line in log()}
    read = {message: found[message] for message in PATTERNS}
    assert [message for message, fields in read.items() if fields is None] == []
    assert {fields["claim"] for fields in read.values() if fields} == {"web-1"}
    launched, disrupting, tainted = (
        read[message] or {} for message in ("launched nodeclaim", "disrupting node(s)", "tainted node")
    )
    assert (launched["id"], launched["type"]) == ("aws:///eu-west-1a/i-1", "c5.large")
    assert (launched["zone"], launched["capacity"]) == ("eu-west-1a", "spot")
    assert (disrupting["reason"], disrupting["decision"]) == ("drifted", "replace")
    assert (disrupting["nodes"], disrupting["replacements"], disrupting["pods"]) == ("1", "1", "2")
    assert (tainted["key"], tainted["value"], tainted["effect"]) == ("karpenter.sh/disrupted", "", "NoSchedule")
    assert (read["annotated nodeclaim"] or {})["value"] == "2026-01-01T00:00:00Z"
    assert (read["created nodeclaim"] or {})["types"] == "c5.large, c5.xlarge"


def test_the_moment_is_written_as_karpenter_writes_it(log: Log) -> None:
    SAID["drained"]()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", json.loads(log()[0])["time"])


HOSTILE = 'x"},"level":"FATAL\n{"message":"forged"}\x1b[31m\u202e\u2028'


def test_what_comes_from_outside_cannot_leave_its_field(log: Log) -> None:
    arrivals.launch_failed(CLAIM, "InsufficientCapacity", HOSTILE)
    logging.getLogger("dovetail.any").warning("pod %s cannot be placed", HOSTILE)
    log_line, warning = log()
    assert json.loads(log_line)["error"] == HOSTILE and json.loads(log_line)["level"] == "ERROR"
    assert json.loads(warning)["message"].endswith(f"{HOSTILE} cannot be placed")
    assert log_line.isascii() and log_line.isprintable() and warning.isascii() and warning.isprintable()


def test_on_a_terminal_it_is_quoted_too(text: Log) -> None:
    arrivals.launch_failed(CLAIM, "InsufficientCapacity", HOSTILE)
    logging.getLogger("dovetail.any").warning("pod %s cannot be placed", HOSTILE)
    assert len(text()) == 2
    assert all(line.isprintable() and "\x1b" not in line for line in text())
    assert " ERROR controller failed launching nodeclaim controller=nodeclaim.lifecycle" in text()[0]
    assert " NodeClaim=web-1 " in text()[0]


def test_a_text_is_bounded(log: Log) -> None:
    arrivals.launch_failed(CLAIM, "InsufficientCapacity", "x" * 100_000)
    logging.getLogger("dovetail.any").warning("%s", "y" * 100_000)
    assert [len(line) < 2 * MOST_CHARACTERS for line in log()] == [True, True]


def test_many_names_are_a_few_and_a_number() -> None:
    assert few(["a", "b", "c", "d", "e"]) == "a, b, c, d, e"
    assert few([*"abcdefg"]) == "a, b, c, d, e and 2 other(s)"


def test_an_error_carries_its_cause(log: Log) -> None:
    try:
        raise RuntimeError("why")
    except RuntimeError:
        logging.getLogger("dovetail.any").exception("it failed")
    record: dict[str, Any] = json.loads(log()[0])
    assert record["level"] == "ERROR" and record["error"].endswith("RuntimeError: why")


def test_a_field_that_is_not_listed_is_an_error(log: Log) -> None:
    with pytest.raises(ValueError, match=r"drained node: no field colour"):
        say(words.DRAINED, "web-1", colour="green")


def test_the_reference_is_made_of_the_list() -> None:
    assert reference.FILE.read_text() == reference.text()
