"""What commands say in each situation of the table: asked of a worker by the command line itself, and by the page."""

import asyncio
from pathlib import Path

import pytest

from tests.cli.browser import Browser, a_page, seen
from tests.printed_commands import commands_in, fault_of
from tests.situations import by_objects, on_servers, page
from tests.situations.scene import Asks, Situation, answered, played
from tests.situations.table import SITUATIONS
from tests.waiting import until_answered

KEPT_SECONDS = 30.0  # by then no answer of before is given any more, also on a crowded machine


@pytest.fixture(autouse=True)
def nobody_else_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLUSTER_NAME", "DOVETAIL_WORLD", "DOVETAIL_SERVICE", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "400")


async def faults_of(asks: Asks, address: str) -> str:
    code, text = await answered(asks, address)
    cannot_be_typed = filter(None, map(fault_of, commands_in(text)))
    return "".join(f"{asks.command}: {fault}\n{text}" for fault in (*asks.faults(code, text), *cannot_be_typed))


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.name)
async def test_the_answer_is_true(situation: Situation, tmp_path: Path) -> None:
    async with played(situation, tmp_path) as stage:
        faults = [await faults_of(asks, stage.address) for asks in situation.asks]
        assert not any(faults), "\n".join(faults)
        await stage.ends()
        for asks in situation.after:
            await says_in_the_end(asks, stage.address)


async def says_in_the_end(asks: Asks, address: str) -> None:
    """An answer that was given before may be kept for a few seconds."""
    faults = ""

    async def said() -> bool:
        nonlocal faults
        faults = await faults_of(asks, address)
        return not faults

    try:
        await until_answered(said, KEPT_SECONDS)
    except AssertionError:
        raise AssertionError(f"after it was over: {faults}") from None


@pytest.mark.slow
@pytest.mark.parametrize("situation", [each for each in SITUATIONS if each.page], ids=lambda each: each.name)
async def test_the_page_says_it_too(situation: Situation, tmp_path: Path) -> None:
    async with played(situation, tmp_path) as stage:
        with a_page() as browser:
            await asyncio.to_thread(shows, browser, situation, stage.address)


def shows(browser: Browser, situation: Situation, address: str) -> None:
    browser.goes_to(f"{address}/api/v1/page")
    for words in situation.page:
        browser.until(f"document.body.innerText.includes({words!r})")
    said = browser.says("document.body.innerText")
    assert [words for words in situation.page_never if words in said] == []
    seen(browser, f"situation-{situation.name.replace(' ', '-')}")
    browser.goes_to("about:blank")  # it asks nobody who is gone


def test_no_situation_stands_twice_and_each_asks() -> None:
    assert len({each.name for each in SITUATIONS}) == len(SITUATIONS)
    assert all(each.asks and all(asks.says for asks in each.asks) for each in SITUATIONS)
    assert all(bool(each.ends) == bool(each.after) for each in SITUATIONS)


def test_forty_are_asked_of_real_servers() -> None:
    on_them = (*on_servers.SITUATIONS, *by_objects.SITUATIONS)
    assert len({each.name for each in on_them}) == len(on_them) >= 40
    assert all(each.asks and all(asks.says for asks in each.asks) for each in on_them)


def test_the_page_is_made_of_the_tables() -> None:
    assert page.FILE.read_text() == page.text(), "python -m tests.situations.page"
