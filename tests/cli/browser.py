"""A real browser without a window, told what to do over its own pipe: the DevTools protocol, nothing else installed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.unavailable import no_browser

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
SECONDS: Final = 90.0


class Browser:
    """One page in Chromium."""

    def __init__(self, profile: Path, *, dark: bool = False) -> None:
        program = next((found for name in NAMES if (found := shutil.which(name))), None)
        if program is None:
            no_browser("there is no Chromium: apt-get install chromium")
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        words = [
            *(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars"),
            *("--disable-component-update", "--disable-sync"),
            *(f"--user-data-dir={profile}", "--remote-debugging-pipe", "--window-size=1300,900"),
            *(["--force-dark-mode"] if dark else []),
            "about:blank",
        ]
        # The protocol's pipes are the descriptors 3 and 4, whatever they are called here.
        shell = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, *words],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._left, self._count, self._session, self._loaded = b"", 0, "", False
        self.problems: list[str] = []
        self.context = ""
        self.begins_anew()

    def begins_anew(self) -> None:
        """Another page, which knows nothing of the last one: neither what it kept nor what it was allowed."""
        self._session = ""
        if self.context:
            self.asks("Target.disposeBrowserContext", browserContextId=self.context)
        self.context = self.asks("Target.createBrowserContext")["browserContextId"]
        target = self.asks("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self._session = self.asks("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.problems.clear()
        self.asks("Runtime.enable")
        self.asks("Page.enable")

    def asks(self, method: str, **given: Any) -> Any:
        """One command and its result."""
        self._count += 1
        number = self._count
        body: dict[str, Any] = {"id": number, "method": method, "params": given}
        if self._session:
            body["sessionId"] = self._session
        os.write(self._out, json.dumps(body).encode() + b"\0")
        while True:
            found = self._message()
            if found.get("id") == number:
                assert "error" not in found, (method, found)
                return found["result"]

    def _message(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the browser has not answered within {SECONDS} s"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser has ended"
            self._left += data
        one, _, self._left = self._left.partition(b"\0")
        found: dict[str, Any] = json.loads(one)
        if found.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(found["params"])[:500])
        self._loaded |= found.get("method") == "Page.loadEventFired"
        return found

    def goes_to(self, address: str) -> None:
        """Load a page, to its end."""
        self._loaded = False
        self.asks("Page.navigate", url=address)
        while not self._loaded:
            self._message()

    def says(self, expression: str) -> Any:
        """What an expression of the page is."""
        found = self.asks("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> Any:
        """Until it is true."""
        deadline = time.monotonic() + SECONDS
        while not (found := self.says(expression)):
            assert time.monotonic() < deadline, (expression, self.problems, self.says("document.body.innerText"))
            time.sleep(0.1)
        return found

    def presses(self, key: str) -> None:
        """One key, as a person presses it."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        named = {"key": key, "code": key} if len(key) > 1 else {"key": key}
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38}
        code = codes.get(key, ord(key.upper()[0]))
        down = {**named, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
        self.asks("Input.dispatchKeyEvent", type="keyDown", **down)
        self.asks("Input.dispatchKeyEvent", type="keyUp", **named, windowsVirtualKeyCode=code)

    def picture(self, file: Path) -> None:
        """What is seen."""
        file.write_bytes(base64.b64decode(self.asks("Page.captureScreenshot", format="png")["data"]))

    def ends(self) -> None:
        """Close it."""
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)


_SHARED: list[tuple[Browser, "tempfile.TemporaryDirectory[str]"]] = []


@contextmanager
def a_page() -> Iterator[Browser]:
    """A page of its own in the browser of all tests of this process: to start one takes longer than to show a page. A
    test that fails takes it with it."""
    if not _SHARED:
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        _SHARED.append((Browser(Path(folder.name)), folder))
    browser = _SHARED[0][0]
    try:
        browser.begins_anew()
        yield browser
    except BaseException:
        end_shared()
        raise


def end_shared() -> None:
    """The browser that tests have shared, if there is one."""
    while _SHARED:
        browser, folder = _SHARED.pop()
        browser.ends()
        folder.cleanup()


def seen(browser: Browser, name: str) -> None:
    """A picture of the whole, where somebody wants to look at them: DOVETAIL_SCREENS says where."""
    if folder := os.environ.get("DOVETAIL_SCREENS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.picture(Path(folder) / f"{name}.png")
