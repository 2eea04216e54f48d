"""How SSM parameters are named: by a path, by a name without one, or by an ARN of either."""

from typing import Final

from testbed.cloud.settings import ACCOUNT

PUBLIC: Final = "/aws/service/"  # parameters that belong to no account
ARN: Final = "arn:"


def parameter_arn(region: str, name: str) -> str:
    """The ARN of a name; an ARN is its own."""
    if name.startswith(ARN):
        return name
    account = "" if f"{name}/".startswith(PUBLIC) else ACCOUNT
    return f"arn:aws:ssm:{region}:{account}:parameter/{name.removeprefix('/')}"


def declared_name(known: dict[str, str], name: str) -> str | None:
    """Under which of the declared names this one is found. An ARN does not say whether its name begins with a slash."""
    path = name.partition(":parameter")[2] if name.startswith(ARN) else name
    return next((each for each in known if each in (path, path.removeprefix("/"))), None)
