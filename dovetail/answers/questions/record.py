"""What has happened: the story of one object, the log of all, and the savings."""

import asyncio
import time
from dataclasses import replace

from dovetail.answers.failures import NotUnderstood
from dovetail.answers.questions.asking import Answered, Asked, Source, in_one_form, named
from dovetail.answers.record.entries import MOST, Entries, Period, period_of
from dovetail.answers.record.history import stories_or_kept
from dovetail.answers.record.history_text import history_text
from dovetail.answers.record.kept import entries_of, kept_objects
from dovetail.answers.record.log import Wanted, log_from, log_in
from dovetail.answers.record.made_for import with_pods
from dovetail.answers.record.savings import NAMESPACE, savings_from, savings_in
from dovetail.model.values.quoting import shown


async def history(source: Source, asked: Asked) -> Answered:
    cluster = named(source.settings)
    answer = await stories_or_kept(await source.temporal(), source.settings, asked.name, source.snapshot())
    return Answered("History", cluster, answer, in_one_form(history_text, answer))


async def log(source: Source, asked: Asked) -> Answered:
    cluster, now = named(source.settings), time.time()
    period = period_of(asked.word("since", "24h"), asked.word("until"), now)
    kinds = tuple(kind for kind in asked.word("kind").split(",") if kind)
    pool, reason, pod = (asked.word(key) for key in ("pool", "reason", "pod"))
    wanted = Wanted(period=period, pool=pool, reason=reason, pod=pod, kinds=kinds)
    found = await _entries(source, period, source.most_entries)
    if pod:
        found = await with_pods(await source.temporal(), cluster, period, found)
    answer = await asyncio.to_thread(log_from, cluster, wanted, found, now, await source.priced())
    return Answered("Log", cluster, answer, lambda form, width: log_in(answer, form, width))


async def savings(source: Source, asked: Asked) -> Answered:
    cluster, now = named(source.settings), time.time()
    period, by = period_of(asked.word("since", "30d"), asked.word("until"), now), asked.word("by", "pool")
    if by not in ("pool", NAMESPACE):
        raise NotUnderstood(f"by: {shown(by)} is not known; it is pool or {NAMESPACE}")
    found = await _entries(
        source, replace(period, ends=True), MOST
    )  # a sum must be complete; each costs us half a millisecond
    answer = await asyncio.to_thread(savings_from, cluster, period, found, now, await source.priced())
    return Answered("Savings", cluster, answer, lambda form, width: savings_in(answer, form, width, by))


async def _entries(source: Source, period: Period, most: int) -> Entries:
    client = await source.temporal()
    async with kept_objects(source.settings) as kept:
        return await entries_of(client, source.settings, kept, period, most)
