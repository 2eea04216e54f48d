"""The web page, through `dovetail top --web` and in a real browser: what is seen, keys alone, dark and light."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dovetail.answers.look.troubles import OwnTrouble, failing, scheduler_silent, watches_broken
from dovetail.answers.serving.page_files import file_of_page, files_of_page
from dovetail.answers.shown.documents import document
from tests.cli.browser import Browser, a_page, seen
from tests.cli.fleet import Served, serving_by
from tests.cli.paged import LOG, ROLES, UI, VIEWS, a_stream, forwarded, page_of, replying, the_page
from tests.cli.test_status_text import NOW
from tests.cli.test_troubles import TROUBLE

ROOT: Final = Path(__file__).parents[2]
ALONE: Final = OwnTrouble(what="one worker works alone", stands_still="nothing, until it ends")
OTHERS: Final = (
    scheduler_silent("no answer within 3 s"),
    *watches_broken({"Pod": "the watch was closed"}, lambda _: 20.0, NOW),
    *failing(["upkeep: 403"]),
    ALONE,
)
# What each view says once it has its answers.
SHOWN: Final = {
    "pods": "a new node of NodePool gpu",
    "plan": "2 nodes become one m7i.xlarge",
    "savings": "$31.50",
    "back": "both decide alike",
}
# From one view to the next: a link of it, and what stands where that leads.
WAY: Final = (
    ("#pools a", "NodePool default"),
    ("#nodes tbody a", "it stays: pod web/api-0"),
    ("#one table a", "it finds no node"),
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving_by(tmp_path, replying(the_page(1200))) as found:
        yield found


@pytest.fixture
def address(served: Served) -> Iterator[str]:
    """Of the forwarder, as the command prints it."""
    with forwarded(served.environment) as found:
        yield found


def fetched(address: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    asked = urllib.request.Request(address, headers=headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_the_page_asks_nobody_but_the_worker_and_makes_no_markup_of_what_it_is_told() -> None:
    files = {name: str(body) for name, (_, _, body) in files_of_page().items()}
    text = "\n".join(files.values())

    outside = [each for each in re.findall(r"https?://[\w./]+", text) if each != "http://www.w3.org/2000/svg"]
    assert outside == [] and "@import" not in text
    assert {*re.findall(r"""(?:src|href)="([^#"]+)\"""", files["index.html"])} <= {f"page/{name}" for name in files}
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc"
    assert re.findall(forbidden, text) == []
    assert [name for name, body in files.items() if "createElement" in body] == ["dom.js"], "elements have one maker"


def test_each_file_is_served_by_its_own_name_and_nothing_else_is() -> None:
    served = {name: file_of_page(f"page/{name}") for name in files_of_page()}
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    assert [
        name for name, file in served.items() if not file or not file[1].startswith(kinds[name.split(".")[1]])
    ] == []
    assert file_of_page("page") == served["index.html"]
    assert [file_of_page(f"page/{name}") for name in ("../api.py", "x.js", "", "/etc/passwd", "page.css/")] == [
        None
    ] * 5
    assert file_of_page("pages") is None
    assert served["icon.svg"] and served["icon.svg"][2] == (ROOT / "docs/pictures/icon.svg").read_text()


def test_the_forwarder_lets_nobody_in_who_does_not_know_its_address(address: str, served: Served) -> None:
    root, _, _ = address.rpartition("/")
    base, _, _ = root.rpartition("/")

    assert fetched(address)[0] == 200 and "<title>Dovetail" in fetched(address)[1]
    assert fetched(f"{root}/page/app.js")[0] == 200 and fetched(f"{root}/page/no.js")[0] == 404
    assert json.loads(fetched(f"{root}/nodes")[1])["kind"] == "NodeList"
    assert fetched(f"{base}/page")[0] == fetched(f"{base}/x/page")[0] == 404
    assert fetched(address, Host="evil.example:80")[0] == 404, "a page of another origin has another name for us"
    assert fetched(f"{root}/../../../secrets")[0] in (400, 404)
    assert fetched(f"{root}/%2e%2e/%2e%2e/secrets")[0] == 400
    assert all("/proxy/api/v1/" in path and ".." not in path for path in served.asked)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_forwarder_lends_the_kubeconfig_to_nobody_who_writes(address: str, served: Served, method: str) -> None:
    before = list(served.asked)

    assert fetched(address, method)[0] == fetched(address.replace("/page", "/status"), method)[0] == 501
    assert served.asked == before, "nothing has come as far as the API server"


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [TROUBLE, *OTHERS], ids=lambda each: each.what)
def test_what_of_dovetail_does_not_work_stands_in_one_line_above_every_view(
    tmp_path: Path, trouble: OwnTrouble
) -> None:
    found = {**the_page(3), "stream": a_stream(troubles=[document("x", "y", trouble)])}
    with a_page() as browser, page_of(tmp_path, found) as address:
        browser.goes_to(address)
        said = browser.until("document.getElementById('troubles').innerText")
        assert trouble.what in said and trouble.stands_still in said
        lines = "document.querySelectorAll('#troubles > *').length"
        assert browser.says(lines) == 1
        for view in VIEWS:
            browser.says(f"document.getElementById('tab-{view}').click()")
            assert browser.says("document.getElementById('troubles').checkVisibility()") is True
        browser.says("document.getElementById('tab-status').click()")
        browser.until("document.querySelectorAll('#map .tile').length")
        seen(browser, f"trouble-{trouble.what[:20].replace(' ', '-')}")
        assert browser.problems == []


@pytest.mark.slow
def test_a_move_of_two_pools_nodes_leads_to_either(tmp_path: Path) -> None:
    both = {**LOG["entries"][0], "pool": "web", "pools": ["web", "db", "web"]}
    with a_page() as browser, page_of(tmp_path, {**the_page(3), "log": {"entries": [both]}}) as address:
        browser.goes_to(address)
        browser.until("document.querySelectorAll('#map .tile').length")
        browser.says("document.getElementById('tab-savings').click()")
        browser.until("Boolean(document.querySelector('#log tbody a'))")
        links = "[...document.querySelectorAll('#log tbody a')].map(each => each.hash).join()"
        assert "#/pool/web,#/pool/db,#/node" in browser.says(links)
        assert browser.problems == []


@pytest.mark.slow
def test_a_person_with_a_keyboard_alone_sees_everything(address: str, tmp_path: Path) -> None:
    with a_page() as browser:
        browser.goes_to(address)
        browser.until("document.getElementById('cluster')?.textContent === 'prod-eu1'")
        assert "$59.00/h" in browser.until("document.getElementById('totals').innerText")
        assert "drain held for 12m" in browser.says("document.getElementById('needs').innerText")
        browser.until("document.querySelectorAll('#map .tile[href]').length === 1200")
        assert "price an hour: from $61.90/h to " in browser.until(
            "document.querySelector('#trend svg')?.getAttribute('aria-label')"
        )
        browser.says("document.querySelector('#map .tile[href]').focus()")
        browser.presses("ArrowRight")
        beside = browser.says("document.activeElement.hash")
        browser.presses("ArrowDown")
        below = browser.says("document.activeElement.hash")
        assert len({beside, below, browser.says("document.querySelector('#map .tile[href]').hash")}) == 3
        browser.presses("/")
        browser.until("document.querySelectorAll('#nodes tbody tr').length === 100")
        for letter in "pool=gpu":
            browser.presses(letter)
        browser.until("document.getElementById('where').textContent === '1–100 of 300'")
        browser.says("document.querySelector('#nodes tbody a').focus()")
        first = browser.says("document.activeElement.hash")
        browser.presses("Enter")
        browser.until("document.getElementById('one').innerText.includes('it stays')")
        assert first.startswith("#/node/gpu-") and browser.says("document.activeElement.id") == "one-title"
        browser.until("document.querySelectorAll('#one-more .timeline li').length === 3")
        browser.says("history.back()")
        browser.until("!document.getElementById('view-nodes').hidden")
        for view, wanted in SHOWN.items():
            browser.says(f"document.getElementById('tab-{view}').focus()")
            browser.presses("Enter")
            browser.until(f"document.getElementById('view-{view}').innerText.includes({wanted!r})")
        browser.until("Boolean(document.querySelector('#flights button'))")
        browser.says("document.querySelector('#flights button').click()")
        browser.until("document.getElementById('replayed').textContent.includes('The same comes out')")
        light = browser.says("getComputedStyle(document.body).backgroundColor")
        browser.says("document.getElementById('theme').click()")
        assert browser.says("getComputedStyle(document.body).backgroundColor") != light
        assert browser.problems == []


@pytest.mark.slow
def test_one_thing_leads_to_the_next_from_pool_to_workflow(address: str, tmp_path: Path) -> None:
    with a_page() as browser:
        browser.goes_to(address)
        for link, wanted in WAY:
            browser.until(f"Boolean(document.querySelector({link!r}))")
            browser.says(f"document.querySelector({link!r}).click()")
            browser.until(f"document.getElementById('main').innerText.includes({wanted!r})")
        browser.says("history.back()")
        workflow = browser.until("document.querySelector('#one dl a[target=_blank]')?.href")
        assert workflow == f"{UI}prod-eu1%2Fclaim%2Fbatch-00002"
        assert browser.problems == []


@pytest.mark.slow
def test_without_the_web_ui_s_address_a_workflow_is_no_link(tmp_path: Path) -> None:
    with a_page() as browser, page_of(tmp_path, {**the_page(3), "stream": a_stream(workflows="")}) as address:
        browser.goes_to(f"{address}#/node/batch-00002")
        browser.until("document.getElementById('one-more').innerText.includes('prod-eu1/claim/')")
        assert browser.says("document.querySelectorAll('a[target=_blank]').length") == 0


@pytest.mark.slow
def test_a_command_is_copied_as_it_stands(address: str, tmp_path: Path) -> None:
    with a_page() as browser:
        allowed = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        browser.asks("Browser.grantPermissions", permissions=allowed, browserContextId=browser.context)
        browser.goes_to(f"{address}#/node/batch-00002")
        browser.until("document.querySelectorAll('#one .copy').length")
        browser.says("document.querySelector('#one .copy').click()")
        browser.until("document.getElementById('said').textContent.includes('dovetail replace batch-00002')")


@pytest.mark.slow
def test_everything_that_can_be_pressed_has_a_name_for_who_does_not_see_it(address: str, tmp_path: Path) -> None:
    with a_page() as browser:
        browser.goes_to(address)
        browser.until("document.getElementById('cluster')?.textContent === 'prod-eu1'")
        browser.asks("Accessibility.enable")
        for view in (*VIEWS, "node/batch-00002", "pod/shop/cart-7f9c4d-x2x9z", "pool/gpu"):
            browser.says(f"location.hash = '#/{view}'")
            browser.until("!document.getElementById('main').innerText.includes('asking')")
            assert unnamed(browser) == [], view
        assert browser.says("document.querySelectorAll('#tabs a:not([hidden])').length") == len(VIEWS)
        assert browser.says("document.documentElement.lang") == "en"


def unnamed(browser: Browser) -> list[tuple[str, str]]:
    """What a person who does not see the page could not tell apart."""
    found = browser.asks("Accessibility.getFullAXTree")["nodes"]
    return [
        (node["role"]["value"], node["nodeId"])
        for node in found
        if not node.get("ignored") and node.get("role", {}).get("value") in ROLES
        if not node.get("name", {}).get("value")
    ]
