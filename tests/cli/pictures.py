"""Draws what `dovetail top` and its page show, of a made-up cluster: `python -m tests.cli.pictures docs/pictures`.

`top.txt` has a terminal's colours, from which `top.svg` is drawn; `page.png` is a real browser's.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from docs.tools.terminal_picture import LONGEST, picture
from dovetail.answers.shown.screen import Screen
from dovetail.cli.remote.workers import Where, Workers
from dovetail.cli.top.drawing import Shown, Size, frame
from dovetail.cli.top.questions import look
from dovetail.cli.top.view import View, items_of
from tests.cli.browser import Browser
from tests.cli.fleet import Served, serving_by
from tests.cli.paged import forwarded, replying, the_page

NODES: Final = 143  # as many as the status of the made-up cluster counts
LINES: Final = 30


def the_top(served: Served) -> list[str]:
    """The lines of one screen, with their colours."""
    workers = Workers(Where(kubeconfig=str(served.kubeconfig)))
    try:
        found = look(workers)
    finally:
        workers.close()
    assert found.status is not None and found.nodes is not None
    view = View(sort="state", turned=True)
    shown = Shown(status=found.status, nodes=found.nodes, items=items_of(found.nodes, view))
    screen = Screen(width=LONGEST, colours=True)
    return [line.rstrip() for line in frame(shown, view, Size(columns=LONGEST, lines=LINES), screen)]


def picture_of_page(served: Served, file: Path) -> None:
    """The status, as the page shows it in the dark."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile, forwarded(served.environment) as address:
        browser = Browser(Path(profile))
        try:
            browser.goes_to(address)
            browser.until("document.getElementById('cluster')?.textContent === 'prod-eu1'")
            browser.says("document.documentElement.dataset.theme = 'dark'")
            browser.until(
                "document.querySelectorAll('#trend svg').length && document.querySelectorAll('#map .tile').length"
            )
            browser.picture(file)
        finally:
            browser.ends()


def main(folder: Path) -> None:
    """Both pictures, into that folder."""
    with TemporaryDirectory() as scratch, serving_by(Path(scratch), replying(the_page(NODES))) as served:
        lines = the_top(served)
        (folder / "top.txt").write_text("\n".join(lines) + "\n")
        (folder / "top.svg").write_text(picture(lines))
        picture_of_page(served, folder / "page.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
