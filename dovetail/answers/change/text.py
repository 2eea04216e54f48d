"""The answer of `dovetail plan -f` as text, as lines of a diff, and as Markdown for a pull request."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from dovetail.answers.change.answer import HOURS_A_MONTH, ChangeAnswer, Costs, DriftedNode, NodeSize, ObjectAnswer
from dovetail.answers.change.fields import FieldChange
from dovetail.answers.change.rollouts import rollout_lines
from dovetail.answers.wording import duration_text, plural, price_text, shown, wrapped
from dovetail.model.values.time import parse_time

MOST: Final = 10
LEAST: Final = 0.00005  # dollars an hour: four digits are shown


def change_text(answer: ChangeAnswer, *, diff: bool = False) -> str:
    """The answer for a terminal. `diff`: for every node that changes, a line for what leaves and lines for what
    comes."""
    return "\n".join(_lines(answer, diff))


def _lines(answer: ChangeAnswer, diff: bool) -> Iterator[str]:
    for each in answer.objects:
        yield from _object_lines(each)
    yield f"Effect  ({answer.source}); nothing is written"
    for line in answer.pauses:
        yield from wrapped("", line)
    for line in effect_lines(answer):
        yield from wrapped("", line)
    if diff:
        yield from (f"  {line}" for line in diff_lines(answer))
    for line in trouble_lines(answer):
        yield from wrapped("! ", line)
    for line in (*answer.unreadable, *answer.notes):
        yield from wrapped("note      ", line)


def _object_lines(each: ObjectAnswer) -> Iterator[str]:
    yield f"{each.kind} {each.name}{', new' if each.is_new else '' if each.fields else ': nothing changes'}"
    fields = [] if each.is_new else each.fields
    for field in fields:
        yield from wrapped(f"{field.sign} ", field_text(field))
    for fault in each.faults:
        yield from wrapped("! ", f"it could not be used: {fault}")


def field_text(field: FieldChange) -> str:
    """The field, and how it changes."""
    path = field.path.removeprefix("spec.")
    if field.before is None:
        return f"{path}: {field.after}"
    if field.after is None:
        return f"{path}: {field.before}"
    return f"{path}: {field.before} → {field.after}"


def effect_lines(answer: ChangeAnswer) -> Iterator[str]:
    """How many nodes drift and why, what they become, what that costs, when."""
    drifting = [node for node in answer.nodes if not node.already]
    if not drifting:
        yield "no node drifts by it"
    else:
        reasons = Counter(node.why for node in drifting)
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        drift = "drifts" if len(drifting) == 1 else "drift"
        yield f"{len(drifting)} of {plural(answer.all_nodes, 'node')} {drift} by it: {why}"
    if already := sum(node.already for node in answer.nodes):
        yield f"{plural(already, 'node')} had drifted before and are counted below"
    if answer.no_longer_drifted:
        yield f"no longer drifted: {shown(answer.no_longer_drifted)}"
    yield from _sizes(answer)
    if answer.waves:
        begins, ends = answer.waves[0].begins, max(wave.ends for wave in answer.waves)
        most = max(wave.nodes for wave in answer.waves)
        whole = duration_text(round(parse_time(ends) - parse_time(answer.at)))
        times = f"{begins} to about {ends} ({whole} in all)"
        by = "the budgets and roll-outs" if answer.rollouts else "the budgets"
        yield f"{plural(len(answer.waves), 'wave')} of at most {plural(most, 'node')} by {by}: {times}"
    for rollout in answer.rollouts:
        yield from rollout_lines(rollout)
    if answer.moved_pods:
        often = (
            "once" if answer.moves == answer.moved_pods else f"{answer.moves / answer.moved_pods:.2f} times on average"
        )
        yield f"{plural(answer.moved_pods, 'pod')} must move, {often}"
    yield from _pace_lines(answer)
    if answer.placed:
        yield f"waiting pods that find a place by it: {shown(answer.placed)}"


def _pace_lines(answer: ChangeAnswer) -> Iterator[str]:
    """How long a node takes, and how that is known; NodePools with the same pace share a line."""
    pools: dict[str, list[str]] = {}
    for pace in answer.paces:
        known = {
            "record": f"median of the last {pace.count}" if pace.count > 1 else "as the last one did",
            "nodes": "partly a guess: none has left of late",
            "nothing": "a guess: the record has none",
        }[pace.source]
        what = "for a node and its replacement" if pace.replaced else "for a node to leave"
        pools.setdefault(f"about {duration_text(round(pace.seconds))} {what} ({known})", []).append(pace.pool)
    for words, named in pools.items():
        yield f"NodePool{'' if len(named) == 1 else 's'} {shown(named, 3)}: {words}"


def _sizes(answer: ChangeAnswer) -> Iterator[str]:
    going = [node.size for node in answer.nodes if node.wave is not None]
    if not going:
        return
    coming = [made.size for node in answer.nodes for made in node.becomes]
    yield f"− {counted(going)}  {price_text(answer.costs.going)}"
    yield f"+ {counted(coming) if coming else 'nothing'}  {price_text(answer.costs.coming)}"
    every = f"{price_text(answer.costs.before)} → {price_text(answer.costs.after)}"
    yield f"= {saving_text(answer.costs)}; all nodes {every}"


def counted(sizes: Sequence[NodeSize]) -> str:
    """3 m5.large spot, 1 m5.xlarge on-demand."""
    found = Counter(f"{size.instance_type or 'of unknown type'} {size.capacity_type}".strip() for size in sizes)
    return shown((f"{count} {words}" for words, count in found.most_common()), 4)


def saving_text(costs: Costs) -> str:
    """How much less or more per hour and per month."""
    more = -costs.saved
    if abs(more) < LEAST:
        return "the same price"
    sign = "+" if more > 0 else "−"
    return f"{sign}{price_text(abs(more))}, {sign}${abs(more) * HOURS_A_MONTH:,.0f} a month"


def trouble_lines(answer: ChangeAnswer) -> Iterator[str]:
    """What would be left behind."""
    by_reason: dict[tuple[str, str], list[DriftedNode]] = {}
    for node in answer.staying:
        assert node.stays is not None
        by_reason.setdefault((node.stays.reason, node.stays.remedy), []).append(node)
    for (reason, remedy), nodes in sorted(by_reason.items()):
        yield f"{plural(len(nodes), 'node')} would stay, {reason}: {remedy}"
        for node in nodes[:MOST]:
            assert node.stays is not None
            opens = f" (its budgets change next at {node.stays.opens})" if node.stays.opens else ""
            yield f"  {node.node}: {node.stays.message}{opens}"
        if len(nodes) > MOST:
            yield f"  and {len(nodes) - MOST} more (-o json has all)"
    for each in answer.homeless[:MOST]:
        where = f"of {each.node}" if each.node else "which waits now"
        yield f"pod {each.pod}, {where}, would find no place: {each.why}"
    if len(answer.homeless) > MOST:
        yield f"and {len(answer.homeless) - MOST} pods more (-o json has all)"
    yield from answer.errors
    if answer.cut:
        yield f"not everything was settled by {answer.until}, and the look ahead ended there"


def diff_lines(answer: ChangeAnswer) -> Iterator[str]:
    """Every node that leaves, with its replacements, in the order of the waves."""
    number: int | None = None
    for node in answer.nodes:
        if node.wave != number and node.wave is not None:
            number, wave = node.wave, answer.waves[node.wave - 1]
            yield f"@@ wave {wave.number}: {wave.begins} to about {wave.ends} @@"
        sign = " " if node.wave is None else "-"
        kept = f"  stays: {node.stays.message}" if node.stays else "  leaves already" if node.under_way else ""
        yield f"{sign} {node.node}  {size_text(node.size)}  {plural(node.pods, 'pod')}  {node.why}{kept}"
        for made in node.becomes:
            yield f"+   {size_text(made.size)}  for {node.node}"
        if node.wave is not None and not node.becomes and node.onto:
            yield f"+   no new node; its pods go to {shown(node.onto, 3)}"


def size_text(size: NodeSize) -> str:
    """Type, capacity type, zone, price."""
    return "  ".join(filter(None, (size.instance_type, size.capacity_type, size.zone, price_text(size.price))))


def change_markdown(answer: ChangeAnswer) -> str:
    """The answer for a comment on a pull request: the verdict, the figures, then the details, collapsed."""
    return "\n".join(_markdown(answer))


def _markdown(answer: ChangeAnswer) -> Iterator[str]:
    names = ", ".join(f"{each.kind} `{each.name}`" for each in answer.objects)
    verdict = "**something would be left behind**" if answer.left_behind else "everything that drifts is replaced"
    yield f"### Dovetail plan: {names}"
    yield ""
    yield f"{answer.source}: {verdict}. Nothing was written."
    yield ""
    for line in effect_lines(answer):
        yield f"- {line}"
    yield ""
    yield "```diff"
    for each in answer.objects:
        yield f"# {each.kind} {each.name}{' (new)' if each.is_new else ''}"
        for field in () if each.is_new else each.fields:
            if field.before is not None:
                yield f"- {field.path}: {field.before}"
            if field.after is not None:
                yield f"+ {field.path}: {field.after}"
    yield "```"
    if troubles := list(trouble_lines(answer)):
        yield ""
        yield "**Left behind**"
        yield ""
        yield from (f"- {line.strip()}" if not line.startswith("  ") else f"  - {line.strip()}" for line in troubles)
    for each in answer.objects:
        yield from (f"- {each.kind} `{each.name}` could not be used: {fault}" for fault in each.faults)
    if answer.nodes:
        yield ""
        yield f"<details><summary>{plural(len(answer.nodes), 'node')}</summary>"
        yield ""
        yield "```diff"
        yield from diff_lines(answer)
        yield "```"
        yield ""
        yield "</details>"
