"""What a program that reads Karpenter's log looks for in each line, as regular expressions of our own writing.

LogParserForKarpenter recognises a line by its message, which must stand between "message" and "commit", and then wants
certain fields behind one another. These ask for the same.
"""

import re
from typing import Final

_MESSAGE: Final = re.compile(r'"message":"(.*)","commit"')
_HEAD: Final = r'"time":"(?P<time>[^"]+)","logger"'
_CLAIM: Final = r'"NodeClaim":\{"name":"(?P<claim>[^"]+)"\}'

_TAINT: Final = (
    r'"taint\.Key":"(?P<key>[^"]+)","taint\.Value":"(?P<value>[^"]*)","taint\.Effect":"(?P<effect>[^"]+)"\}$'
)

PATTERNS: Final = {
    "created nodeclaim": (
        rf'{_HEAD}.*"NodePool":\{{"name":"(?P<pool>[^"]+)"\}},{_CLAIM},"requests".*"instance-types":"(?P<types>[^"]*)"\}}$'
    ),
    "launched nodeclaim": (
        rf'{_HEAD}.*{_CLAIM},.*"provider-id":"(?P<id>[^"]+)","instance-type":"(?P<type>[^"]+)","zone":"(?P<zone>[^"]+)",'
        r'"capacity-type":"(?P<capacity>[^"]+)","allocatable"'
    ),
    "registered nodeclaim": rf'{_HEAD}.*{_CLAIM},.*,"Node":\{{"name":"(?P<node>[^"]+)"\}}\}}$',
    "initialized nodeclaim": rf'{_HEAD}.*{_CLAIM},"namespace"',
    "disrupting node(s)": (
        rf'{_HEAD}.*"reason":"(?P<reason>[^"]+)","decision":"(?P<decision>[^"]+)","disrupted-node-count":(?P<nodes>\d+),'
        r'"replacement-node-count":(?P<replacements>\d+),"pod-count":(?P<pods>\d+),'
        rf'"disrupted-nodes":.*,{_CLAIM},"capacity-type"'
    ),
    "initiating delete from interruption message": (rf'{_HEAD}.*"messageKind":"(?P<kind>[^"]+)",{_CLAIM},"action"'),
    "annotated nodeclaim": rf'{_HEAD}.*{_CLAIM},"namespace".*,"(?P<key>[^"]+)":"(?P<value>[^"]+)"\}}$',
    "tainted node": rf"{_HEAD}.*{_CLAIM},{_TAINT}",
    "deleted nodeclaim": rf'{_HEAD}.*{_CLAIM},"namespace"',
}


def message_of(line: str) -> str:
    """The line's message; empty where it has none that such a program finds."""
    found = _MESSAGE.search(line)
    return found.group(1) if found else ""


def found_in(line: str) -> dict[str, str] | None:
    """What such a program reads from the line; None where it reads nothing."""
    pattern = PATTERNS.get(message_of(line))
    found = re.search(pattern, line) if pattern else None
    return found.groupdict() if found else None
