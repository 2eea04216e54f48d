"""Parts of the API server's audit log."""

import json
from pathlib import Path

from testbed.plane.audit import AuditLog


def line(number: int) -> str:
    """As the API server writes a request."""
    reference = {"resource": "nodes", "name": f"n{number}"}
    asked = {"requestReceivedTimestamp": "2026-11-28T00:00:00Z", "responseStatus": {"code": 200}}
    return json.dumps({"verb": "get", "objectRef": reference, "user": {"username": "worker"}, **asked}) + "\n"


def test_a_part_of_the_log_is_what_was_written_between_two_places(tmp_path: Path) -> None:
    """Whatever is written while it is read belongs to no part before."""
    log = AuditLog(tmp_path / "audit.log")
    places = [log.end()]
    for number in range(3):
        with log.path.open("a") as file:
            file.write(line(number))
        places.append(log.end())
    with log.path.open("a") as file:
        file.write(line(3)[:20])  # half written

    assert [entry.name for entry in log.entries(places[1], places[2])] == ["n1"]
    assert [entry.name for entry in log.entries(places[0], places[2])] == ["n0", "n1"]
    assert [entry.name for entry in log.entries(places[2])] == ["n2"]
    assert log.entries(places[3], places[3]) == []
