"""What a browser may do with a worker's answer: no other content type, no frames, and only the page's own scripts."""

from typing import Final

ALWAYS: Final = (("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store"))
POLICY: Final = "Content-Security-Policy"
# Scripts and styles are files of the page's own origin: none is in the markup, and none comes from elsewhere.
_PARTS: Final = (
    "default-src 'none'",
    *(f"{kind}-src 'self'" for kind in ("script", "style", "connect", "img")),
    *(f"{what} 'none'" for what in ("base-uri", "form-action", "frame-ancestors")),
)
OF_PAGES: Final = (("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"), (POLICY, "; ".join(_PARTS)))
# Passed on by anything between a worker and a browser.
HANDED_ON: Final = ("Content-Encoding", *(name for name, _ in (*ALWAYS, *OF_PAGES)))


def headers_of(kind: str) -> tuple[tuple[str, str], ...]:
    """The headers of an answer besides its type and length."""
    return (*ALWAYS, *OF_PAGES) if kind.startswith("text/html") else ALWAYS
