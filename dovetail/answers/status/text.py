"""`dovetail status` for people, from the document that the worker's API answers.

It loads nothing of the engines: a person who asks a worker waits for no more than the answer.
"""

import textwrap
from collections.abc import Sequence
from typing import Any, Final

from dovetail.answers.shown.documents import Document
from dovetail.answers.shown.screen import GOES_ON, NEEDS_PERSON, WAITS, Screen
from dovetail.answers.shown.tables import Column, bar, markdown_table, table
from dovetail.answers.wording import duration_text
from dovetail.model.time import parse_time

HOURS_IN_MONTH: Final = 730
MOST_MOVES: Final = 20
MOST_NEEDS: Final = 10

MOVES: Final = (
    Column(head="UNDER WAY", cut=True, least=24),
    Column(head="POOL", rank=4, cut=True),
    Column(head="WHY", rank=5, cut=True),
    Column(head="STEP"),
    Column(head="PROGRESS", rank=1, cut=True, least=26),
    Column(head="AGE", rank=6, right=True),
    Column(head="STOP IT", rank=2),
)
_NAMES: Final = (Column(head="NODECLAIM", cut=True, least=44), Column(head="NODE", rank=3, cut=True))
POOLS: Final = (
    Column(head="POOL", cut=True),
    Column(head="NODES", right=True),
    Column(head="$/H", right=True),
    Column(head="CPU", rank=3, right=True),
    Column(head="MEM", rank=4, right=True),
    Column(head="DRIFTED", rank=2, right=True),
    Column(head="MAY GO NOW", rank=1, cut=True),
    Column(head="NEXT", rank=5, cut=True),
)
_COLOURS: Final = {"held": WAITS, "disruption": GOES_ON, "termination": GOES_ON, "launch": GOES_ON}


def status_text(found: Document, screen: Screen, wide: bool = False) -> str:
    """The whole screen."""
    now = parse_time(found["now"])
    most = (len(found["underWay"]), len(found["needsPerson"])) if wide else (MOST_MOVES, MOST_NEEDS)
    blocks = [
        _head(found, screen),
        _moves(found["underWay"], now, screen, most[0]),
        _needs(found["needsPerson"], screen, most[1]),
        table(POOLS, [_pool_row(pool, now) for pool in found["pools"]], screen) if found["pools"] else ["no NodePools"],
        _foot(found, now, screen.width),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(found: Document, screen: Screen) -> list[str]:
    lines = _folded(_totals(found), screen)
    totals = found["totals"]
    uses = [("cpu", totals["cpu"]), ("memory", totals["memory"])]
    cells = 20 if (screen.width or 120) >= 72 else 8
    parts = [f"{name} {bar(_share(use), cells)} {_share(use):.0%}" for name, use in uses]
    lines += _folded(parts, screen, "   ")
    pauses = [part for line in found["pauses"] for part in _wrapped(line, screen.width)]
    return [*lines, *[screen.paint(line, WAITS) for line in pauses]]


def _totals(found: Document) -> list[str]:
    totals = found["totals"]
    month = totals["price"] * HOURS_IN_MONTH
    money = f"${totals['price']:,.2f}/h, {_dollars(month)}/mo"
    if totals["unpriced"]:
        money += f" and {_counted(totals['unpriced'], 'node')} of unknown price"
    pending = f" ({totals['pendingPods']:,} pending)" if totals["pendingPods"] else ""
    workers, others = found.get("workers"), totals.get("notOurs")
    return [
        _whose(found),
        _counted(totals["nodes"], "node") + (f" ({others:,} not ours)" if others else ""),
        _counted(totals["pods"], "pod") + pending,
        money,
        f"spot {totals['spot']:.0%}",
        *([_counted(workers, "worker")] if workers is not None else []),
        f"Scheduler: {found['scheduler']}",
    ]


def _whose(found: Document) -> str:
    cluster = str(found["cluster"] or "cluster")
    return f"{cluster}, NodePool {found['pool']}" if found.get("pool") else cluster


def _dollars(amount: float) -> str:
    return f"${amount / 1000:,.1f}k" if amount >= 10_000 else f"${amount:,.0f}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _share(use: dict[str, float]) -> float:
    return use["used"] / use["room"] if use["room"] else 0.0


def _folded(parts: Sequence[str], screen: Screen, gap: str = " · ") -> list[str]:
    """The parts in as few lines as they fit in."""
    lines: list[str] = []
    for part in parts:
        if lines and (screen.width is None or len(lines[-1]) + len(gap) + len(part) <= screen.width):
            lines[-1] += gap + part
        else:
            lines.append(part)
    return lines


def _moves(moves: list[dict[str, Any]], now: float, screen: Screen, most: int) -> list[str]:
    if not moves:
        return ["nothing is under way"]
    shown = moves[:most]
    lines = table(MOVES, [_move_row(move, now) for move in shown], screen, [_colour(move) for move in shown])
    if MOVES[-1].head not in lines[0] and any(move["stop"] for move in moves):
        lines = _moves_by_claim(shown, now, screen)
    return [*lines, f"... and {len(moves) - most} more (-o wide)"] if len(moves) > most else lines


def _moves_by_claim(moves: list[dict[str, Any]], now: float, screen: Screen) -> list[str]:
    """Where a command for each has no room: whole names of NodeClaims, to be copied, and the command once."""
    rows = [
        (move["claim"], move["name"] if move["name"] != move["claim"] else "", *_move_row(move, now)[1:])
        for move in moves
    ]
    lines = table((*_NAMES, *MOVES[1:-1]), rows, screen, [_colour(move) for move in moves])
    return [
        *lines,
        *_wrapped("stop one that is not deleted yet: dovetail cancel NODECLAIM --reason TEXT", screen.width),
    ]


def _colour(move: dict[str, Any]) -> str:
    return WAITS if move["blockers"] else str(_COLOURS.get(move["kind"], ""))


def _move_row(move: dict[str, Any], now: float) -> tuple[str, ...]:
    saved = f" −${move['savings']:.2f}/h" if move["savings"] else ""
    due = parse_time(move["due"]) if move["due"] else None
    waits = f"in {duration_text(max(0, round(due - now)))}" if due is not None else ""
    progress = " ".join(part for part in (waits, move["progress"]) if part)
    age = duration_text(max(0, round(now - parse_time(move["since"]))))
    return (move["name"], move["pool"], move["why"] + saved, move["step"], progress, age, _stop(move))


def _stop(move: dict[str, Any]) -> str:
    if move["stop"]:
        return str(move["stop"]).removesuffix(" --reason TEXT")
    return "too late (deleted)" if move["kind"] == "termination" else "–"


def _needs(needs: list[dict[str, Any]], screen: Screen, most: int) -> list[str]:
    if not needs:
        return ["nothing needs a person"]
    lines = ["NEEDS A PERSON"]
    for need in needs[:most]:
        head = f"!  {need['about']}  "
        lines += _clipped(screen.paint("!", NEEDS_PERSON), f"{head[1:]}{need['what']}", need["command"], screen)
    return [*lines, f"... and {len(needs) - most} more (-o wide)"] if len(needs) > most else lines


def _clipped(mark: str, text: str, command: str, screen: Screen) -> list[str]:
    """One line where it fits, with the command behind; else the command stands below."""
    if screen.width is None or 1 + len(text) + 2 + len(command) <= screen.width:
        return [f"{mark}{text}  {command}".rstrip()]
    first = text if 1 + len(text) <= screen.width else text[: screen.width - 2] + "…"
    return [mark + first, *([f"   {command}"] if command else [])]


def _pool_row(pool: dict[str, Any], now: float) -> tuple[str, ...]:
    due = pool["nextDue"]
    after = f"{pool['next']} {_until(parse_time(due) - now)}" if due else ""
    return (
        pool["name"],
        str(pool["nodes"]),
        f"{pool['price']:,.2f}",
        f"{_share(pool['cpu']):.0%}",
        f"{_share(pool['memory']):.0%}",
        str(pool["drifted"]) if pool["drifted"] else "–",
        may_go(pool["mayGo"]),
        after,
    )


def _until(seconds: float) -> str:
    return f"in {duration_text(round(seconds))}" if seconds >= 0 else "now"


def may_go(allowed: list[dict[str, Any]]) -> str:
    """How many may go; by reason where the reasons differ."""
    words = {each["reason"]: _one(each) for each in allowed}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{reason} {said}" for reason, said in words.items())


def _one(each: dict[str, Any]) -> str:
    return f"{each['left']}, {each['whyNot']}" if each["whyNot"] else f"{each['left']} of {each['allowed']}"


def _foot(found: Document, now: float, width: int | None) -> list[str]:
    recent = [f"{_ago(parse_time(each['at']), now)}  {each['text']}" for each in found["recent"]]
    left_out = [f"left out: {line}" for line in found["unreadable"]]
    notes = [f"note: {note}" for note in found["notes"]]
    lines = [*(["RECENT", *recent] if recent else []), *left_out, *notes]
    return [part for line in lines for part in _wrapped(line, width)]


def _wrapped(line: str, width: int | None) -> list[str]:
    return [line] if width is None or len(line) <= width else textwrap.wrap(line, width, subsequent_indent="  ")


def _ago(moment: float, now: float) -> str:
    return f"{duration_text(max(0, round(now - moment)))} ago".rjust(11)


def status_markdown(found: Document) -> str:
    """For pull requests and tickets."""
    now = parse_time(found["now"])
    lines = [f"**{' · '.join(_totals(found))}**", ""]
    lines += [f"- {line}" for line in found["pauses"]]
    if found["underWay"]:
        lines += ["", *markdown_table(MOVES, [_move_row(move, now) for move in found["underWay"]])]
    if found["needsPerson"]:
        lines += ["", "Needs a person:", ""]
        lines += [f"- **{need['about']}**: {need['what']} (`{need['command']}`)" for need in found["needsPerson"]]
    return "\n".join([*lines, "", *markdown_table(POOLS, [_pool_row(pool, now) for pool in found["pools"]])])


def status_names(found: Document) -> str:
    """What is under way, as kubectl takes it."""
    return "\n".join(f"nodeclaim.karpenter.sh/{move['claim']}" for move in found["underWay"])
