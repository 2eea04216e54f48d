"""The web page where things are not as they should be, or not as usual: errors, a narrow window, a large cluster, both
colour schemes, a person without a mouse."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from tests.cli.browser import Browser, a_page, seen
from tests.cli.fleet import Reply, documents, serving_by
from tests.cli.paged import VIEWS, a_stream, an_empty_page, forwarded, page_of, replying, the_page

pytestmark = pytest.mark.slow

NODES: Final = 5000
ASKS: Final = "dovetail decide ip-10-0-3-17 wait 6h"
BROKEN: Final = "the worker is busy with other questions; ask again"
HOSTILE: Final = "<img src=x onerror=document.title='taken'>"
ONES: Final = ("node/batch-00002", "pod/shop/cart-7f9c4d-x2x9z", "pool/default")
PLAIN: Final = frozenset({"kind", "apiVersion", "datetime"})
GOES_BY: Final = frozenset({"state", "id"})  # a state of the closed list; the id of a decision is in a path of the test
# What stands right of the window's edge, where it cannot be scrolled to: on a phone no table is wider than it.
OUTSIDE: Final = """[...document.querySelectorAll('main :is(td, button, a, dd, figure, p)')].filter(each =>
  each.checkVisibility() && (WIDTH < 600 || !each.closest('.wide')) && each.getBoundingClientRect().right > WIDTH)
  .map(each => each.outerHTML.slice(0, 80))"""
CUT: Final = "[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.id)"
# Every piece of text that is seen, with the contrast of its colour to what lies behind it, where that is too little.
FAINT: Final = """(() => {
  const parts = colour => (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const back = each => parts(getComputedStyle(each).backgroundColor);
  const behind = each => { for (let e = each; e; e = e.parentElement) { const c = back(e);
    if (c.length < 4 || c[3] > 0.99) return c; } return back(document.body); };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walk.nextNode(); text; text = walk.nextNode()) {
    const each = text.parentElement, box = each.getBoundingClientRect();
    if (!text.data.trim() || !box.width || /SCRIPT|STYLE/.test(each.tagName)) continue;
    const style = getComputedStyle(each), colour = each.closest("svg") ? style.fill : style.color;
    const a = light(parts(colour)), b = light(behind(each));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push([text.data.slice(0, 30), colour, Number(contrast.toFixed(2))]);
  }
  return found;
})()"""


@contextmanager
def looking(folder: Path, answers: dict[str, Any]) -> Iterator[Browser]:
    """A browser that has the page of these answers before it."""
    with page_of(folder, answers) as address, a_page() as browser:
        browser.goes_to(address)
        yield browser
        assert browser.problems == []


def comes_to(browser: Browser, view: str) -> None:
    """A view, once it has its answers."""
    browser.says(f"""new Promise(done => {{
      if (location.hash === '#/{view}') return done();
      addEventListener('hashchange', () => done(), {{ once: true }});
      location.hash = '#/{view}'; }})""")
    browser.until("!document.getElementById('main').innerText.includes('asking')")


def named(browser: Browser) -> None:
    browser.until("document.getElementById('cluster')?.textContent === 'prod-eu1'")


@pytest.mark.parametrize("count", [0, 5, 300])
def test_nothing_lies_outside_the_window(tmp_path: Path, count: int) -> None:
    with looking(tmp_path, the_page(count) if count else an_empty_page()) as browser:
        named(browser)
        for width in (1920, 1280, 390):
            size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
            browser.asks("Emulation.setDeviceMetricsOverride", **size)
            for view in (*VIEWS, *ONES):
                comes_to(browser, view)
                browser.until(f"document.documentElement.scrollWidth <= {width}")
                assert browser.says(OUTSIDE.replace("WIDTH", str(width))) == [], (width, view)
                assert browser.says(CUT) == [], (width, view)
                seen(browser, f"{view.replace('/', '-')}-{count}-{width}")


def test_every_text_can_be_read_in_both_colour_schemes(tmp_path: Path) -> None:
    trouble = {"what": "Temporal does not answer", "goesOn": "drains", "standsStill": "launches", "page": "docs/x.md"}
    answers = {**the_page(300), "stream": a_stream(troubles=[trouble])}
    with looking(tmp_path, answers) as browser:
        named(browser)
        backs = []
        for scheme in ("dark", "light"):
            wanted = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.asks("Emulation.setEmulatedMedia", features=wanted)
            backs.append(browser.says("getComputedStyle(document.body).backgroundColor"))
            for view in (*VIEWS, *ONES):
                comes_to(browser, view)
                assert browser.says(FAINT) == [], (scheme, view)
                seen(browser, f"{view.replace('/', '-')}-{scheme}")
        assert len(set(backs)) == 2, "the page follows the system"


def test_the_state_of_a_node_is_seen_without_colours(tmp_path: Path) -> None:
    nodes = documents(6)["nodes"]
    states = ("ready", "terminating", "pending", "not ours", "ready")
    for row, state in zip(nodes["nodes"], states, strict=False):
        row |= {"state": state, "what": ""}
    nodes["nodes"][4]["what"] = "drifted"
    with looking(tmp_path, {**the_page(6), "nodes": nodes}) as browser:
        browser.until("document.querySelectorAll('#map .tile[href]').length === 6")
        look = "(s => [s.borderTopStyle, s.borderTopRightRadius].join())(getComputedStyle(each))"
        tiles = (
            "new Map([...document.querySelectorAll('#map .tile[href]')].map(each => [each.className, " + look + "]))"
        )
        assert browser.says(f"new Set({tiles}.values()).size") == browser.says(f"{tiles}.size") == 5
        said = browser.says("document.querySelector('#map .tile.leaving[href]').getAttribute('aria-label')")
        assert ": leaves, " in said and "/h, cpu " in said


def test_a_node_that_needs_a_person_is_seen_on_the_map_at_once(tmp_path: Path) -> None:
    """The list of nodes is asked for seldom in a large cluster: its tile was as all others until then."""
    with looking(tmp_path, the_page(6)) as browser:
        named(browser)
        browser.until("document.querySelectorAll('#map .tile[href]').length === 6")
        needing = browser.says("""(async () => {
          const { known, showStatus } = await import(document.baseURI.split('#')[0] + '/status.js');
          const about = known.nodes.nodes[1].name;
          showStatus({ ...known.status, needsPerson: [{ about, what: 'drain held', command: '' }] });
          const marked = [...document.querySelectorAll('#map .tile.needs[href]')];
          return marked.map(each => each.ariaLabel.split(':')[0] === about);
        })()""")
        assert needing == [True]


def test_a_roll_out_shows_its_steps_and_what_answers_it_and_each_answer_of_a_drain_is_copied_alone(
    tmp_path: Path,
) -> None:
    """DIQ-37."""
    held = {"about": "ip-10-0-3-17", "what": "drain held by a PDB", "command": ASKS, "since": None, "pool": "default"}
    with looking(tmp_path, {**the_page(5), "stream": a_stream(needsPerson=[held])}) as browser:
        named(browser)
        [asks, goes] = browser.until("[...document.querySelectorAll('.rollout')].map(each => each.innerText)")
        assert "waits for a person's approval: step rest" in asks and "▸ quarter: 30 nodes, soaks 1h, then asks" in asks
        assert "dovetail rollout approve default-7f3c9a51d0" in asks and "dovetail rollout approve" not in goes
        assert "gate nodes: Unknown, no pod is ready yet" in goes
        states = "document.querySelectorAll('.rollout h3 > span:nth-of-type(2)')"
        assert browser.says(f"[...{states}].map(each => each.className)") == ["needs", "goes"]
        label = browser.says("document.querySelector('.rollout [role=img]').getAttribute('aria-label')")
        assert label == "default-7f3c9a51d0: 30 of 120 nodes at the target"
        width = "e => Math.round(100 * e.getBoundingClientRect().width / e.parentElement.getBoundingClientRect().width)"
        assert browser.says(f"[...document.querySelectorAll('.rollout .bar')].map({width})") == [25, 25, 50, 25]
        decided = browser.says("[...document.querySelectorAll('#needs code')].map(each => each.textContent)")
        assert decided == [f"dovetail decide ip-10-0-3-17 {each}" for each in ("wait 6h", "force")]


def test_where_a_worker_knows_of_no_roll_outs_their_part_is_hidden(tmp_path: Path) -> None:
    status = {**documents(1)["status"]}
    del status["rollouts"]
    stream = f"event: status\ndata: {json.dumps(status)}\n\n"
    with looking(tmp_path, {**the_page(5), "stream": stream}) as browser:
        named(browser)
        browser.until("document.getElementById('totals').innerText.includes('Scheduler')")
        assert browser.says("document.getElementById('rollouts-part').hidden") is True


@pytest.mark.soak
def test_five_thousand_nodes_are_on_the_map_and_only_what_differs_is_written(tmp_path: Path) -> None:
    with looking(tmp_path, the_page(NODES)) as browser:
        named(browser)
        browser.until(f"document.querySelectorAll('#map .tile[href]').length === {NODES}")
        written = browser.says("""(async () => {
          const { known, showNodesOnMap } = await import(document.baseURI.split('#')[0] + '/status.js');
          const tiles = new Set(document.querySelectorAll('#map .tile[href]')), seen = [];
          const watch = new MutationObserver(all => seen.push(...all.filter(each => each.target.matches?.('.tile'))));
          watch.observe(document.getElementById('map'), { attributes: true, childList: true, subtree: true });
          known.nodes.nodes.find(each => each.claim === 'gpu-00003').pods = 99;
          showNodesOnMap();
          while (!seen.length) await new Promise(done => setTimeout(done, 20));
          const same = [...document.querySelectorAll('#map .tile[href]')].every(each => tiles.has(each));
          const changed = new Set(seen.filter(each => each.target.href).map(each => each.target.hash));
          return [same, [...changed]];
        })()""")
        assert written == [True, ["#/node/gpu-00003"]]
        for scheme in ("light", "dark"):
            browser.asks("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            for width in (1920, 1280, 390):
                size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
                browser.asks("Emulation.setDeviceMetricsOverride", **size)
                browser.until(f"document.documentElement.scrollWidth <= {width}")
                assert browser.says(OUTSIDE.replace("WIDTH", str(width))) == [], width
                seen(browser, f"map-5000-{width}-{scheme}")


@pytest.mark.soak
def test_five_thousand_nodes_are_paged_filtered_and_grouped(tmp_path: Path) -> None:
    with looking(tmp_path, the_page(NODES)) as browser:
        named(browser)
        comes_to(browser, "nodes")
        browser.until("document.querySelectorAll('#nodes tbody tr').length === 100")
        browser.until("document.getElementById('where').textContent === '1–100 of 5000'")
        browser.says("for (let i = 0; i < 60; i++) document.getElementById('after').click()")
        browser.until("document.getElementById('where').textContent === '4901–5000 of 5000'")
        browser.says("document.getElementById('group').value = 'zone'")
        browser.says("document.getElementById('group').dispatchEvent(new Event('change'))")
        sums = browser.until("document.querySelector('#nodes tr.group')?.innerText")
        assert sums.startswith("eu-west-1a: 1,667 nodes, $"), sums
        browser.presses("/")
        for letter in "ip-10-0-19-249":
            browser.presses(letter)
        assert browser.until("document.getElementById('where').textContent === '1–1 of 1'")


def test_an_api_that_answers_with_errors_is_quoted_in_every_view(tmp_path: Path) -> None:
    message = json.dumps({"kind": "Error", "message": BROKEN})
    files = replying({"version": {}})

    def answer(target: str) -> Reply:
        found = files(target)
        return found if found[0] == 200 else (503, "application/json", message)

    with serving_by(tmp_path, answer) as served, forwarded(served.environment) as address, a_page() as browser:
        browser.goes_to(address)
        for view in (*VIEWS, *ONES):
            comes_to(browser, view)
            browser.until(f"document.getElementById('main').innerText.includes({BROKEN!r})")
            seen(browser, f"{view.replace('/', '-')}-broken")
        assert browser.says("document.getElementById('live').className") == "needs"
        assert browser.problems == []


def test_what_was_seen_last_stays_where_the_worker_no_longer_answers(tmp_path: Path) -> None:
    trouble = f"event: trouble\ndata: {json.dumps({'message': BROKEN})}\n\n"
    with looking(tmp_path, {**the_page(1), "stream": a_stream() + trouble}) as browser:
        browser.until(f"document.getElementById('live').textContent.includes({BROKEN!r})")
        assert browser.says("document.querySelector('#live time').dateTime").startswith("20")
        assert "$59.00/h" in browser.says("document.getElementById('totals').innerText")


def test_an_empty_cluster_says_what_to_type_next(tmp_path: Path) -> None:
    with looking(tmp_path, an_empty_page()) as browser:
        named(browser)
        said = browser.until("document.getElementById('empty').innerText")
        assert "No node is needed now" in said and "kubectl create deployment" in said
        assert browser.says("document.querySelectorAll('#empty .copy').length") == 4
        hidden = (
            "['needs', 'moves', 'map', 'recent', 'trend'].every(id => document.getElementById(id + '-part').hidden)"
        )
        assert browser.says(hidden), "no heading over nothing"
        comes_to(browser, "pods")
        assert "No pod waits for a node" in browser.says("document.getElementById('pods').innerText")
        comes_to(browser, "plan")
        assert "Nothing would be done now" in browser.says("document.getElementById('plan').innerText")


def test_a_time_is_relative_and_the_moment_stands_behind_it(tmp_path: Path) -> None:
    with looking(tmp_path, the_page(3)) as browser:
        comes_to(browser, "pods")
        found = "(e => [e.textContent, e.dateTime, e.title])(document.querySelector('#pods tbody time'))"
        text, at, title = browser.until(f"document.querySelector('#pods tbody time') && {found}")
        assert re.fullmatch(r"(\d+[dhms]){1,2}", text)
        assert title == at.replace("T", " ").replace("Z", " UTC")


def hostile(value: Any) -> Any:
    """The same document with markup, scripts and an address that is none in every text but those that the page goes
    by."""
    if isinstance(value, dict):
        return {key: each if key in GOES_BY or key in PLAIN else hostile(each) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    is_moment = isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value)
    return f"{HOSTILE} {value}" if isinstance(value, str) and not is_moment else value


def test_what_the_cluster_s_objects_say_stays_text_wherever_it_is_shown(tmp_path: Path) -> None:
    answers = {path: hostile(found) for path, found in the_page(60).items() if path != "stream"}
    status = {**hostile(documents(1)["status"]), "troubles": [hostile({"what": "x", "goesOn": "y", "page": "z"})]}
    status["workflows"] = f"javascript:{HOSTILE}"
    answers["stream"] = f"event: status\ndata: {json.dumps(status)}\n\n"
    with looking(tmp_path, answers) as browser:
        for view in (*VIEWS, *ONES, f"node/{quote(HOSTILE, safe='')}", f"pod/{quote(HOSTILE, safe='')}/x"):
            comes_to(browser, view)
            browser.until("document.getElementById('main').innerText.includes('onerror')")
        browser.says("document.querySelector('#tab-back').click()")
        browser.until("Boolean(document.querySelector('#flights button'))")
        browser.says("document.querySelector('#flights button').click()")
        browser.until("document.getElementById('replayed').innerText.includes('onerror')")
        assert browser.says("document.title") != "taken"
        foreign = "[...document.querySelectorAll('script, img, iframe, object, a')].filter(each => "
        foreign += "!/^(page[/]|#[/]|#main$)/.test(each.getAttribute('src') ?? each.getAttribute('href') ?? '#/'))"
        assert browser.says(f"{foreign}.map(each => each.outerHTML)") == []
        assert (
            browser.says("document.querySelectorAll('main script, main iframe, [onerror], [style*=url]').length") == 0
        )


def test_without_a_mouse_every_view_and_every_control_is_reached(tmp_path: Path) -> None:
    with looking(tmp_path, the_page(300)) as browser:
        named(browser)
        active = "document.activeElement.id"
        for view in VIEWS[1:]:
            browser.says("document.activeElement.blur()")
            tabbed_to(browser, f"{active} === 'tab-{view}'")
            browser.presses("Enter")
            browser.until(f"!document.getElementById('view-{view}').hidden")
        browser.until("document.querySelectorAll('#flights button').length === 1")
        tabbed_to(browser, "document.activeElement.dataset.flight")
        browser.presses("Enter")
        browser.until("document.getElementById('replayed').textContent.includes('17-26-40')")
        browser.presses("/")
        tabbed_to(browser, "document.activeElement.dataset.sort === 'name'")
        browser.presses("Enter")
        browser.until("document.querySelector('th[aria-sort=ascending]')?.innerText.startsWith('node')")
        tabbed_to(browser, "document.activeElement.closest('tr[data-claim]')")
        browser.presses("Enter")
        browser.until("document.getElementById('one').textContent.length > 100")
        tabbed_to(browser, f"{active} === 'at'")
        for letter in "3h":
            browser.presses(letter)
        browser.presses("Enter")
        browser.until("document.getElementById('at')?.value === '3h'")


@pytest.mark.parametrize("wanted", ["[data-sort]", "tr[data-claim]"])
def test_what_a_person_has_tabbed_to_is_kept_when_new_answers_come(tmp_path: Path, wanted: str) -> None:
    with looking(tmp_path, the_page(30)) as browser:
        comes_to(browser, "nodes")
        browser.until("document.querySelectorAll('#nodes tbody tr').length === 30")
        tabbed_to(browser, f"document.activeElement.closest('{wanted}')")
        there = "(e => e.dataset.sort ?? e.hash)(document.activeElement)"
        before = browser.says(there)
        browser.says("document.querySelector('#nodes table').id = 'old-table'")
        browser.says("import(document.baseURI.split('#')[0] + '/nodes.js').then(found => found.showNodes())")
        browser.until("Boolean(document.querySelector('#nodes table')) && !document.getElementById('old-table')")
        assert browser.says(there) == before


def tabbed_to(browser: Browser, wanted: str) -> None:
    """By the Tab key, as often as a person might bear."""
    for _ in range(40):
        if browser.says(f"Boolean({wanted})"):
            return
        browser.presses("Tab")
    raise AssertionError((wanted, browser.says("document.activeElement.outerHTML.slice(0, 200)")))
