"""Carries the file of a planned change to a worker, in the query of a request that changes nothing.

Any request other than GET would need another right than the one to look. The file's content appears in the API server's
audit log, as it does when it is applied.
"""

import base64
import zlib
from typing import Final

from dovetail.answers.change.reading import MOST_BYTES
from dovetail.answers.failures import CommandFailed, NotUnderstood

MOST_CARRIED: Final = 40_000  # characters: a worker takes a line of 64 KiB


def packed(text: str) -> str:
    """The text, compressed and safe for a query; CommandFailed if it is too long for one."""
    if len(text.encode()) > MOST_BYTES:
        raise NotUnderstood(f"the file is larger than {MOST_BYTES // 1024} KiB; plan it in parts")
    found = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode()
    if len(found) > MOST_CARRIED:
        raise CommandFailed(f"the file is too large to be sent to a worker ({len(text):,} characters); use --local")
    return found


def unpacked(carried: str) -> str:
    """The text again; of a few kilobytes that would unpack to megabytes, no more is unpacked than may be read."""
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.urlsafe_b64decode(carried), MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise NotUnderstood(f"file: it is larger than {MOST_BYTES // 1024} KiB; plan it in parts")
        if not reader.eof:
            raise NotUnderstood("file: it cannot be unpacked: its end is missing")
        return data.decode()
    except (ValueError, zlib.error) as error:  # wrong characters, and text that is not UTF-8
        raise NotUnderstood(f"file: it cannot be unpacked: {error}") from None
