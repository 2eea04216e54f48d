"""AWS's clock where it is not the caller's: what the world says it is ahead by, or behind where that is negative."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from testbed.cloud.http.errors import AwsError
from testbed.cloud.http.wire import moment

# "Common errors" of the EC2 API reference: RequestExpired, more than 15 minutes after or before the date stamp.
MOST_APART: Final = 15 * 60
_WRITTEN: Final = "%Y%m%dT%H%M%SZ"


def check_signed(environ: Mapping[str, Any], now: float) -> None:
    """A signature is too old, or from a future that AWS does not see yet."""
    signed = environ.get("HTTP_X_AMZ_DATE")
    if not signed:
        return
    apart = now - datetime.strptime(signed, _WRITTEN).replace(tzinfo=UTC).timestamp()
    if abs(apart) > MOST_APART:
        raise AwsError("RequestExpired", f"Request has expired: it was signed {int(apart)} s before it was received.")


def by_its_clock(shape: Any, value: Any, ahead: float) -> Any:
    """An answer with its moments as that clock says them."""
    if shape is None or value is None or not ahead:
        return value
    if shape.type_name == "structure":
        members = shape.members
        return {k: by_its_clock(members[k], inner, ahead) if k in members else inner for k, inner in value.items()}
    if shape.type_name == "list":
        return [by_its_clock(shape.member, each, ahead) for each in value]
    return _later(value, ahead) if shape.type_name == "timestamp" else value


def _later(value: Any, ahead: float) -> Any:
    if isinstance(value, int | float):
        return value + ahead
    when = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment(when + timedelta(seconds=ahead))
