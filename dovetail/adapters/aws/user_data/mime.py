"""User data of several parts, as cloud-init and nodeadm read it (AWS-97, AWS-98).

The class's own parts come first, ours last, because the last one wins. User data that claims to be MIME but cannot be
parsed is refused, never passed on in part.
"""

import email
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dovetail.adapters.aws.user_data.bootstrap import BadUserData

SHELL: Final = 'text/x-shellscript; charset="us-ascii"'
NODE_CONFIG: Final = "application/node.eks.aws"

_BOUNDARY: Final = "//"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    content_type: str
    body: str


def is_mime(text: str) -> bool:
    """Whether it claims to be MIME."""
    lowered = text.lstrip().lower()
    return lowered.startswith(("mime-version:", "content-type: multipart"))


def read_parts(text: str) -> list[Part]:
    message = email.message_from_string(text.strip() + "\n")
    if not message.is_multipart():
        raise BadUserData("userData: looks like a MIME message but has no boundary or no parts")
    parts = []
    for part in message.walk():
        if part.is_multipart():
            continue
        payload = part.get_payload(decode=True)
        body = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else str(part.get_payload())
        parts.append(Part(content_type=part.get("Content-Type", SHELL), body=body))
    return parts


def write_parts(parts: Iterable[Part]) -> str:
    head = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{_BOUNDARY}"\n\n'
    bodies = "".join(f"--{_BOUNDARY}\nContent-Type: {part.content_type}\n\n{part.body.rstrip()}\n\n" for part in parts)
    return f"{head}{bodies}--{_BOUNDARY}--\n"
