"""What a browser is to hold to with an answer of a worker: one kind, no frames, and no script but those of the page."""

import base64
import hashlib
import re
from functools import lru_cache
from typing import Final

ALWAYS: Final = (("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store"))
OF_PAGES: Final = (("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"))
POLICY: Final = "Content-Security-Policy"
# Handed on by what stands between a worker and a browser.
HANDED_ON: Final = (POLICY, *(name for name, _ in (*ALWAYS, *OF_PAGES)))

_INLINE: Final = {
    kind: re.compile(rf"<{kind}(?:\s[^>]*)?>(.*?)</{kind}>", re.DOTALL | re.IGNORECASE) for kind in ("script", "style")
}
_ATTRIBUTE: Final = re.compile(r"""<[^>]*\sstyle=(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


def headers_of(kind: str, body: object) -> tuple[tuple[str, str], ...]:
    """The headers of an answer beside its kind and its length."""
    if not kind.startswith("text/html"):
        return ALWAYS
    return (*ALWAYS, *OF_PAGES, (POLICY, policy(body if isinstance(body, str) else "")))


@lru_cache(maxsize=4)
def policy(page: str) -> str:
    """No script and no style but what stands in the page as it is served, by its hash, or in files of its origin."""
    scripts, styles = (_hashes(_INLINE[kind].findall(page)) for kind in ("script", "style"))
    attributes = _hashes([double or single for double, single in _ATTRIBUTE.findall(page)])
    parts = {
        "default-src": "'none'",
        "script-src": _allowed(scripts, "<script src=" in page),
        "style-src-elem": _allowed(styles, "stylesheet" in page),
        "style-src-attr": f"'unsafe-hashes' {attributes}" if attributes else "'none'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def _hashes(texts: list[str]) -> str:
    found = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts if text]
    return " ".join(f"'sha256-{each}'" for each in dict.fromkeys(found))


def _allowed(hashes: str, has_files: bool) -> str:
    return " ".join(filter(None, (hashes, "'self'" if has_files else ""))) or "'none'"
