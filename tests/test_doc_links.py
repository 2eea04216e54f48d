"""Every link in the guides leads somewhere, every page is in the site's navigation, every command in a guide exists.

Fast: the pages are read as text. The strict build of the site is `make docs`; that it is strict is a slow test.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from dovetail.cli.main import parser

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(str(page.relative_to(ROOT)) for page in DOCS.rglob("*.md")), "README.md"]
GUIDES = sorted(str(page.relative_to(ROOT)) for page in (DOCS / "guides").glob("*.md"))
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


@cache
def text_of(page: Path) -> str:
    """Without what stands in code."""
    return re.sub(r"`[^`\n]*`", lambda found: found[0].strip("`"), _FENCE.sub("", page.read_text(encoding="utf-8")))


@cache
def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as the site makes them."""
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in _HEADING.findall(text_of(page)))
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", one).strip().lower()) for one in plain}


def links(page: str) -> Iterator[str]:
    """Those that stay within the project."""
    for target in _LINK.findall(text_of(ROOT / page)):
        if not re.match(r"[a-z]+:", target):
            yield target


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_page_and_a_heading(page: str) -> None:
    broken = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        there = (ROOT / page).parent / path if path else ROOT / page
        if not there.exists() or (anchor and anchor not in anchors(there.resolve())):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if page != "README.md"])
def test_no_page_of_the_site_links_out_of_it(page: str) -> None:
    outside = [
        target
        for target in links(page)
        if target.partition("#")[0] and DOCS not in ((ROOT / page).parent / target.partition("#")[0]).resolve().parents
    ]
    assert outside == []


def pages_named(nav: object) -> Iterator[str]:
    """Every page in the navigation."""
    if isinstance(nav, str):
        yield nav
    for below in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from pages_named(below)


def test_every_page_is_in_the_navigation() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = set(pages_named(site["nav"]))
    there = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert named - there == set()
    assert there - named == {"reference/screens.md"}  # captures, to look up


def commands(page: str) -> Iterator[str]:
    """The lines of a page's shell blocks, continued ones joined."""
    for block in re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        yield from block.replace("\\\n", " ").splitlines()


@pytest.mark.parametrize("page", GUIDES)
def test_every_dovetail_command_in_a_guide_is_one(page: str) -> None:
    wrong = []
    for line in commands(page):
        if line.startswith("dovetail "):
            try:
                parser().parse_args(shlex.split(line, comments=True)[1:])
            except SystemExit:
                wrong.append(line)
    assert wrong == []


def test_the_guides_have_commands_to_check() -> None:
    assert sum(line.startswith("dovetail ") for page in GUIDES for line in commands(page)) >= 15


def charts_keys(chart: Path) -> set[str]:
    """Every key of a chart's values, with dots."""

    def walk(value: object, path: str) -> Iterator[str]:
        yield path
        for key, below in value.items() if isinstance(value, dict) else ():
            yield from walk(below, f"{path}.{key}".strip("."))

    return set(walk(yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8")), ""))


@pytest.mark.parametrize("page", GUIDES)
def test_every_value_that_a_guide_sets_is_a_key_of_the_chart(page: str) -> None:
    chart = ROOT / "deploy/charts/dovetail"
    keys = charts_keys(chart)
    ours = [line for line in commands(page) if not re.match(r"helm \S+ (--install )?temporal temporal ", line)]
    given = [found for line in ours for found in re.findall(r'--set "?([\w.]+)=', line)]
    assert [key for key in given if key not in keys] == []


def built(site: Path, config: Path) -> subprocess.CompletedProcess[str]:
    """`make docs`, in the environment of its own that it makes."""
    return subprocess.run(
        ["make", "docs", f"SITE={site}", f"SITE_CONFIG={config}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = built(tmp_path, ROOT / "mkdocs.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "guides/install-eks.html").exists()


@pytest.mark.slow
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    """With mkdocs' --quiet it did not: what is not logged is not counted."""
    config = tmp_path / "mkdocs.yml"
    config.write_text("site_name: one page\nstrict: true\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("[somewhere](nowhere.md)\n")

    done = built(tmp_path / "site", config)

    assert done.returncode != 0
    assert "nowhere.md" in done.stdout
    assert not (tmp_path / "site/index.html").exists()
