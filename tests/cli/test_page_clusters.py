"""The page's view of all clusters: who answers it, how often Temporal is asked, and what is seen in a real browser."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.answers.fleet.answer import ClusterRow, FleetAnswer
from dovetail.answers.shown.documents import Document
from dovetail.cli.commands.fleet import fleet_document
from dovetail.cli.remote.workers import Where, Workers
from dovetail.cli.top.clusters import KEPT_SECONDS, Clusters, clusters_of_here
from dovetail.cli.top.web import forwarder
from dovetail.messages.reports import ClusterReport, ReportedNeed, ReportedWorker
from tests.cli.browser import a_page, seen
from tests.cli.fleet import serving_by
from tests.cli.paged import ROLES, replying, the_page
from tests.cli.test_page_conditions import CUT, FAINT, OUTSIDE
from tests.cli.test_page_conditions import named as knows_its_cluster
from tests.cli.test_status_text import NOW

HOSTILE: Final = "<img src=x onerror=alert(1)>"
NEED: Final = ReportedNeed(
    about="shop/web-1", what="pending for 9m", since=NOW, command="dovetail explain pod shop/web-1"
)
TOLD: Final = ClusterReport(
    at=NOW - 240,
    version="0.2.0",
    kubernetes="v1.35.1",
    region="eu-west-1",
    workers=(ReportedWorker(pod="dovetail-0", version="0.2.0", since=NOW - 9e4),),
    nodes=128,
    price=61.0,
    pending_pods=3,
    launches=2,
    drifted=14,
    needs=(NEED,),
    needing=4,
)
QUIET: Final = ClusterReport(at=NOW - 60, version="0.2.0", region="us-east-1", nodes=1200, price=410.0)
FLEET: Final = FleetAnswer(
    namespace="dovetail",
    now=NOW,
    clusters=(
        ClusterRow(
            name="old-eu2", state="silent", silent_since=NOW - 7200, month=0.0, report=ClusterReport(at=NOW - 7200)
        ),
        ClusterRow(name="prod-eu1", state="needs a person", month=44530.0, report=TOLD),
        ClusterRow(name=HOSTILE, state="unknown", note="it has not reported yet"),
        ClusterRow(name="prod-us1", state="fine", month=299300.0, report=QUIET),
        ClusterRow(name="stage", state="fine", month=0.0, report=ClusterReport(at=NOW, pauses=("all: by ann",))),
    ),
)


def refused() -> Document:
    raise CommandFailed("no Temporal server at temporal.example:7233")


@contextmanager
def page(folder: Path, ask: Callable[[], Document] | None) -> Iterator[str]:
    """The address of the page as the command serves it, with clusters that a test has made."""
    with serving_by(folder, replying(the_page(3))) as served:
        workers = Workers(Where(kubeconfig=str(served.kubeconfig)))
        workers.document("version")
        server = forwarder(workers, 0, None if ask is None else Clusters(ask))
        serving = threading.Thread(target=server.serve_forever, args=(0.02,))
        serving.start()
        try:
            yield server.address
        finally:
            server.shutdown()
            server.server_close()
            serving.join()
            workers.close()


def fetched(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_clusters_are_told_by_the_command_and_by_no_worker(tmp_path: Path) -> None:
    with page(tmp_path, lambda: fleet_document(FLEET)) as address:
        root = address.removesuffix("/page")
        status, text = fetched(f"{root}/fleet")
        assert (status, json.loads(text)) == (200, fleet_document(FLEET))
        assert "clusters = true" in fetched(f"{root}/page/here.js")[1]
    with page(tmp_path, None) as address:
        root = address.removesuffix("/page")
        assert fetched(f"{root}/fleet")[0] == 404
        assert "clusters = false" in fetched(f"{root}/page/here.js")[1]


def test_that_temporal_does_not_answer_is_one_line(tmp_path: Path) -> None:
    with page(tmp_path, refused) as address:
        status, text = fetched(address.removesuffix("page") + "fleet")
    assert (status, json.loads(text)["message"]) == (502, "no Temporal server at temporal.example:7233")


def test_views_that_ask_together_are_one_question() -> None:
    asked: list[float] = []
    time = 0.0

    def ask() -> Document:
        asked.append(time)
        return {"asked": len(asked)}

    clusters = Clusters(ask, lambda: time)
    assert [clusters.document(), clusters.document()] == [{"asked": 1}] * 2
    time = KEPT_SECONDS + 1
    assert clusters.document() == {"asked": 2}


def test_where_nothing_says_where_temporal_is_there_is_no_such_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "none.toml"))
    monkeypatch.delenv("TEMPORAL_ADDRESS", raising=False)
    assert clusters_of_here() is None
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    found = clusters_of_here()
    assert found is not None
    with pytest.raises(CommandFailed, match="no Temporal server at"):
        found.document()


@pytest.mark.slow
def test_all_clusters_are_seen_with_what_they_need_and_nothing_of_theirs_becomes_markup(tmp_path: Path) -> None:
    with a_page() as browser, page(tmp_path, lambda: fleet_document(FLEET)) as address:
        browser.goes_to(address)
        knows_its_cluster(browser)  # the status has come, and with it what the time is there
        browser.until("!document.getElementById('tab-clusters').hidden")
        browser.says("document.getElementById('tab-clusters').click()")
        rows = "[...document.querySelectorAll('#clusters tbody tr')]"
        browser.until(f"{rows}.length === 5")
        shown = "document.getElementById('clusters').innerText"
        said = browser.says(shown)
        for text in ("silent for 2h", "shop/web-1 pending for 9m", "and 3 more", "2 come, 14 drifted"):
            assert text in said, said
        assert "1,328" in said and "paused" in said and HOSTILE in said
        assert browser.says("document.querySelectorAll('#clusters img').length") == 0
        browser.asks("Accessibility.enable")
        for width in (1920, 1280, 390):
            size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
            browser.asks("Emulation.setDeviceMetricsOverride", **size)
            browser.until(f"document.documentElement.scrollWidth <= {width}")
            assert browser.says(OUTSIDE.replace("WIDTH", str(width))) == [] and browser.says(CUT) == [], width
            seen(browser, f"clusters-{width}")
        for scheme in ("dark", "light"):
            wanted = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.asks("Emulation.setEmulatedMedia", features=wanted)
            assert browser.says(FAINT) == [], scheme
        nodes = browser.asks("Accessibility.getFullAXTree")["nodes"]
        named = [n for n in nodes if not n.get("ignored") and n.get("role", {}).get("value") in ROLES]
        assert [n for n in named if not n.get("name", {}).get("value")] == []
        assert browser.problems == []


@pytest.mark.slow
def test_without_the_command_the_page_has_no_such_view(tmp_path: Path) -> None:
    with a_page() as browser, page(tmp_path, None) as address:
        browser.goes_to(f"{address}#/clusters")
        browser.until("document.getElementById('clusters').innerText.includes('dovetail fleet')")
        assert browser.says("document.getElementById('tab-clusters').checkVisibility()") is False
        assert browser.problems == []
