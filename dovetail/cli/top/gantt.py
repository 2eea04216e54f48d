"""The steps of a node's workflows as bars beside one time axis, from the document of `dovetail history`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dovetail.answers.shown.documents import Document
from dovetail.answers.wording import duration_text
from dovetail.model.values.time import parse_time

LEAST_BAR: Final = 10
MOST_WORDS: Final = 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    words: str
    begins: float
    ends: float
    runs: bool = False


def gantt_lines(found: Document, now: float, width: int) -> list[str]:
    """Each workflow with its steps, on one common axis."""
    stories = found["stories"]
    begins = min(parse_time(story["started"]) for story in stories)
    ends = max(now if story["ended"] is None else parse_time(story["ended"]) for story in stories)
    words = min(MOST_WORDS, max(16, width // 3))
    cells = max(LEAST_BAR, width - words - 12)
    lines = [f"{'':{words}}  {_axis(ends - begins, cells)}"]
    for story in stories:
        lines.append(f"{story['workflow']}  {story['type']}, {story['status']}")
        lines.extend(_line(bar, (begins, ends), words, cells) for bar in _bars(story, now))
    return lines


def _bars(story: dict[str, Any], now: float) -> Iterator[Bar]:
    for line in story["lines"]:
        took = line.get("seconds")
        if took is not None:
            at = parse_time(line["at"])
            yield Bar(words=line["text"], begins=at - took, ends=at)
    for step in story["now"]:
        yield Bar(words=step["step"], begins=parse_time(step["since"]), ends=now, runs=True)


def _axis(seconds: float, cells: int) -> str:
    end = duration_text(round(seconds))
    return "0" + "·" * max(0, cells - 1 - len(end)) + end


def _line(bar: Bar, axis: tuple[float, float], words: int, cells: int) -> str:
    begins, ends = axis
    span = (ends - begins) or 1.0
    first = max(0, min(cells - 1, int((bar.begins - begins) / span * cells)))
    last = max(first + 1, min(cells, round((bar.ends - begins) / span * cells)))
    drawn = " " * first + ("░" if bar.runs else "█") * (last - first)
    text = bar.words if len(bar.words) <= words - 2 else bar.words[: words - 3] + "…"
    return f"  {text:{words - 2}}  {drawn:{cells}}  {duration_text(round(bar.ends - bar.begins, 1))}".rstrip()
