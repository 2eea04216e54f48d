"""The file of a planned change on its way to a worker: in the query of a request that changes nothing.

A request of another kind than GET would need another right than that to look. What the file holds stands in the API
server's audit log, as it does when it is applied.
"""

import base64
import binascii
import zlib
from typing import Final

from dovetail.cli.output import CommandFailed

MOST_CARRIED: Final = 40_000  # characters: a worker takes a line of 64 KiB
MOST_BYTES: Final = 2**20  # of the file itself


def packed(text: str) -> str:
    """The text, short and fit for a query; CommandFailed where it is too long for one."""
    found = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode()
    if len(found) > MOST_CARRIED:
        raise CommandFailed(f"the file is too large to be sent to a worker ({len(text):,} characters); use --local")
    return found


def unpacked(carried: str) -> str:
    """The text again."""
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.urlsafe_b64decode(carried), MOST_BYTES)
        if reader.unconsumed_tail:
            raise CommandFailed(f"file: it is larger than {MOST_BYTES} bytes")
        return data.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError) as error:
        raise CommandFailed(f"file: it cannot be unpacked: {error}") from None
