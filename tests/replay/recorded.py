"""Recorded histories as files: where they are, how they are written and read."""

import json
import re
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory

HISTORIES = Path(__file__).parent / "histories"


def recorded_files(folder: Path = HISTORIES) -> list[Path]:
    """Every recorded history."""
    return sorted(folder.glob("*/*.json"))


def read_history(file: Path) -> WorkflowHistory:
    """A history under the id that it ran under: child ids are made of it."""
    text = file.read_text()
    started = json.loads(text)["events"][0]["workflowExecutionStartedEventAttributes"]
    return WorkflowHistory.from_json(started["workflowId"], text)


def anonymous(history: WorkflowHistory) -> str:
    """A history without what names the machine that it was recorded on, an event a line; no command hangs on it."""
    found = [_without_places(event) for event in json.loads(history.to_json())["events"]]
    found[0]["workflowExecutionStartedEventAttributes"]["workflowId"] = history.workflow_id  # not every server says it
    events = [json.dumps(event, separators=(",", ":")) for event in found]
    # Sticky queues are named for process and machine.
    return re.sub(r"\d+@[A-Za-z0-9_.-]+", "worker", '{"events":[\n' + ",\n".join(events) + "\n]}\n")


def _without_places(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_places(inner) for key, inner in value.items() if key != "stackTrace"}
        return kept | ({"identity": "worker"} if "identity" in kept else {})
    return [_without_places(inner) for inner in value] if isinstance(value, list) else value
