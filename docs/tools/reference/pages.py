"""All pages of docs/reference by their names, each under the line that says where it comes from; and the schemas."""

from docs.tools.reference.annotations import annotations_page
from docs.tools.reference.beginnings import beginnings_page
from docs.tools.reference.commands import commands_page
from docs.tools.reference.events import events_page
from docs.tools.reference.kinds import kinds_page
from docs.tools.reference.schemas import schema_files
from docs.tools.reference.screens import screens_page
from docs.tools.reference.settings import settings_page

WRITTEN = "<!-- Written by `make reference` from the code. Change that, not this page. -->\n"
# Captures have the words of ten other pages each, so the site's search leaves them out.
UNSEARCHED = "---\nsearch: {exclude: true}\n---\n"


def pages() -> dict[str, str]:
    """Name and text."""
    found = {
        "settings.md": settings_page(),
        "cli.md": commands_page(),
        "annotations.md": annotations_page(),
        "events.md": events_page(),
        "beginnings.md": beginnings_page(),
        "kinds.md": kinds_page(),
        "screens.md": screens_page(),
    }
    under = {name: f"{WRITTEN}\n{text.strip()}\n" for name, text in found.items()}
    return {**under, "screens.md": UNSEARCHED + under["screens.md"], **schema_files()}
