"""What a browser is to hold to with an answer of a worker: one kind, no frames, and no script but those of the page."""

from typing import Final

ALWAYS: Final = (("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store"))
POLICY: Final = "Content-Security-Policy"
# Scripts and styles are files of the page's own origin: none stands in the markup, and none comes from elsewhere.
_PARTS: Final = (
    "default-src 'none'",
    *(f"{kind}-src 'self'" for kind in ("script", "style", "connect", "img")),
    *(f"{what} 'none'" for what in ("base-uri", "form-action", "frame-ancestors")),
)
OF_PAGES: Final = (("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"), (POLICY, "; ".join(_PARTS)))
# Handed on by what stands between a worker and a browser.
HANDED_ON: Final = ("Content-Encoding", *(name for name, _ in (*ALWAYS, *OF_PAGES)))


def headers_of(kind: str) -> tuple[tuple[str, str], ...]:
    """The headers of an answer beside its kind and its length."""
    return (*ALWAYS, *OF_PAGES) if kind.startswith("text/html") else ALWAYS
