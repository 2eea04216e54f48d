"""`dovetail status` for people.

The engines are not loaded: a person who asks a worker waits only for the answer.
"""

import textwrap
from collections.abc import Sequence
from typing import Final

from dovetail.answers.look.troubles import OwnTrouble
from dovetail.answers.rollouts.text import one_line, rollouts_block
from dovetail.answers.shown.screen import GOES_ON, NEEDS_PERSON, WAITS, Screen
from dovetail.answers.shown.tables import Column, bar, markdown_table, table
from dovetail.answers.status.answer import Allowed, ClusterStatus, Move, PoolStatus, Totals
from dovetail.answers.wording import HOURS_IN_MONTH, age_text, dollars_text, duration_text, plural

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


def status_text(found: ClusterStatus, screen: Screen, wide: bool = False) -> str:
    now = found.now
    most = (len(found.under_way), len(found.needs_person)) if wide else (MOST_MOVES, MOST_NEEDS)
    blocks = [
        _troubles(found, screen),
        _head(found, screen),
        _moves(found.under_way, now, screen, most[0]),
        _needs(found, screen, most[1]),
        rollouts_block(found.rollouts, now, screen),
        [part for line in found.shortages for part in _wrapped(line, screen.width)],
        table(POOLS, [_pool_row(pool, now) for pool in found.pools], screen) if found.pools else ["no NodePools"],
        _foot(found, screen.width),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _troubles(found: ClusterStatus, screen: Screen) -> list[str]:
    lines = [part for each in found.troubles for part in _wrapped(f"!  {trouble_words(each, found.now)}", screen.width)]
    return [screen.paint(line, NEEDS_PERSON) for line in lines]


def trouble_words(trouble: OwnTrouble, now: float) -> str:
    """What is wrong, since when, what still works, what does not, and where to read more."""
    since = f" for {duration_text(round(now - trouble.since))}" if trouble.since is not None else ""
    parts = [
        f"goes on: {trouble.goes_on}" if trouble.goes_on else "",
        f"stands still: {trouble.stands_still}" if trouble.stands_still else "",
        f"-> {trouble.page}" if trouble.page else "",
    ]
    return " · ".join([trouble.what + since, *filter(None, parts)])


def _head(found: ClusterStatus, screen: Screen) -> list[str]:
    lines = _folded(_totals(found), screen)
    cells = 20 if (screen.width or 120) >= 72 else 8
    uses = (("cpu", found.totals.cpu), ("memory", found.totals.memory))
    lines += _folded([f"{name} {bar(use.share, cells)} {use.share:.0%}" for name, use in uses], screen, "   ")
    pauses = [part for line in found.pauses for part in _wrapped(line, screen.width)]
    return [*lines, *[screen.paint(line, WAITS) for line in pauses]]


def _totals(found: ClusterStatus) -> list[str]:
    totals = found.totals
    money = f"${totals.price:,.2f}/h, {dollars_text(totals.price * HOURS_IN_MONTH)}/mo"
    if totals.unpriced:
        money += f" and {plural(totals.unpriced, 'node')} of unknown price"
    pending = f" ({totals.pending_pods:,} pending)" if totals.pending_pods else ""
    return [
        (found.cluster or "cluster") + (f", NodePool {found.pool}" if found.pool else ""),
        nodes_words(totals),
        plural(totals.pods, "pod") + pending,
        money,
        f"spot {totals.spot:.0%}",
        *([plural(found.workers, "worker")] if found.workers is not None else []),
        f"Scheduler: {found.scheduler}",
    ]


def nodes_words(totals: Totals) -> str:
    """How many there are, and how many of them are not ours."""
    return plural(totals.nodes, "node") + (f" ({totals.not_ours:,} not ours)" if totals.not_ours else "")


def _folded(parts: Sequence[str], screen: Screen, gap: str = " · ") -> list[str]:
    """The parts, in as few lines as possible."""
    lines: list[str] = []
    for part in parts:
        if lines and (screen.width is None or len(lines[-1]) + len(gap) + len(part) <= screen.width):
            lines[-1] += gap + part
        else:
            lines.append(part)
    return lines


def _moves(moves: Sequence[Move], now: float, screen: Screen, most: int) -> list[str]:
    if not moves:
        return ["nothing is under way"]
    shown = moves[:most]
    lines = table(MOVES, [_move_row(move, now) for move in shown], screen, [_colour(move) for move in shown])
    if MOVES[-1].head not in lines[0] and any(move.stop for move in moves):
        lines = _moves_by_claim(shown, now, screen)
    return [*lines, f"... and {len(moves) - most} more (-o wide)"] if len(moves) > most else lines


def _moves_by_claim(moves: Sequence[Move], now: float, screen: Screen) -> list[str]:
    """What is under way, if there is no room for a command line each: NodeClaims with full names, to be copied, and the
    command once."""
    rows = [(move.claim, move.name if move.name != move.claim else "", *_move_row(move, now)[1:]) for move in moves]
    lines = table((*_NAMES, *MOVES[1:-1]), rows, screen, [_colour(move) for move in moves])
    return [
        *lines,
        *_wrapped("stop one that is not deleted yet: dovetail cancel NODECLAIM --reason TEXT", screen.width),
    ]


def _colour(move: Move) -> str:
    return WAITS if move.blockers else _COLOURS.get(move.kind, "")


def _move_row(move: Move, now: float) -> tuple[str, ...]:
    saved = f" −${move.savings:.2f}/h" if move.savings else ""
    waits = f"in {age_text(move.due - now)}" if move.due is not None else ""
    progress = " ".join(part for part in (waits, move.progress) if part)
    return (move.name, move.pool, move.why + saved, move.step, progress, age_text(now - move.since), _stop(move))


def _stop(move: Move) -> str:
    if move.stop:
        return move.stop.removesuffix(" --reason TEXT")
    return "too late (deleted)" if move.kind == "termination" else "–"


def _needs(found: ClusterStatus, screen: Screen, most: int) -> list[str]:
    needs = found.needs_person
    if not needs:
        return ["nothing else needs a person" if found.troubles else "nothing needs a person"]
    lines = ["NEEDS A PERSON"]
    for need in needs[:most]:
        head = f"!  {need.about}  "
        lines += _need(screen.paint("!", NEEDS_PERSON), f"{head[1:]}{need.what}", need.command, screen)
    return [*lines, f"... and {len(needs) - most} more (-o wide)"] if len(needs) > most else lines


def _need(mark: str, text: str, command: str, screen: Screen) -> list[str]:
    """One line if it fits, with the command at its end; else as many as needed, with the whole command below: these
    lines are what the screen is for."""
    width = screen.width
    if width is None or 1 + len(text) + 2 + len(command) <= width:
        return [f"{mark}{text}  {command}".rstrip()]
    first, *rest = textwrap.wrap(text, width - 1, subsequent_indent="   ", break_on_hyphens=False)
    return [f"{mark}  {first.lstrip()}", *rest, *([f"   {command}"] if command else [])]


def _pool_row(pool: PoolStatus, now: float) -> tuple[str, ...]:
    after = f"{pool.next} {_until(pool.next_due - now)}" if pool.next_due is not None else ""
    return (
        pool.name,
        str(pool.nodes),
        f"{pool.price:,.2f}",
        f"{pool.cpu.share:.0%}",
        f"{pool.memory.share:.0%}",
        str(pool.drifted) if pool.drifted else "–",
        may_go(pool.may_go),
        after,
    )


def _until(seconds: float) -> str:
    return f"in {duration_text(round(seconds))}" if seconds >= 0 else "now"


def may_go(allowed: Sequence[Allowed]) -> str:
    """How many may leave; by reason if the reasons differ."""
    words = {each.reason: _one(each) for each in allowed}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{reason} {said}" for reason, said in words.items())


def _one(each: Allowed) -> str:
    return f"{each.left}, {each.why_not}" if each.why_not else f"{each.left} of {each.allowed}"


def _foot(found: ClusterStatus, width: int | None) -> list[str]:
    recent = [f"{age_text(found.now - each.at)} ago".rjust(11) + f"  {each.text}" for each in found.recent]
    left_out = [f"left out: {line}" for line in found.unreadable]
    notes = [f"note: {note}" for note in found.notes]
    lines = [*(["RECENT", *recent] if recent else []), *left_out, *notes]
    return [part for line in lines for part in _wrapped(line, width)]


def _wrapped(line: str, width: int | None) -> list[str]:
    return [line] if width is None or len(line) <= width else textwrap.wrap(line, width, subsequent_indent="  ")


def status_markdown(found: ClusterStatus) -> str:
    """The screen for pull requests and tickets."""
    lines = [f"**{trouble_words(each, found.now)}**\n" for each in found.troubles]
    lines += [f"**{' · '.join(_totals(found))}**", ""]
    lines += [f"- {line}" for line in found.pauses]
    if found.under_way:
        lines += ["", *markdown_table(MOVES, [_move_row(move, found.now) for move in found.under_way])]
    if found.rollouts:
        lines += ["", "Roll-outs:", ""]
        lines += [f"- **{each.name}** ({each.pool}): {one_line(each, found.now)}" for each in found.rollouts]
    if found.needs_person:
        lines += ["", "Needs a person:", ""]
        lines += [f"- **{need.about}**: {need.what} (`{need.command}`)" for need in found.needs_person]
    return "\n".join([*lines, "", *markdown_table(POOLS, [_pool_row(pool, found.now) for pool in found.pools])])


def status_names(found: ClusterStatus) -> str:
    """The names of what is under way, as kubectl accepts them."""
    return "\n".join(f"nodeclaim.karpenter.sh/{move.claim}" for move in found.under_way)
