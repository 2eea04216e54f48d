"""What an error of AWS means: its code becomes one of dovetail.ports.failures, or an answer to branch on.

Classified by code and status, never by the message's text (AWS-108, AWS-188), except for one code that EC2 uses for two
things: `AuthFailure` means either invalid credentials or an image that is not shared with the account. Only a code of
AWS's own proves that nothing happened; an internal error or a broken connection does not.
"""

from dataclasses import dataclass
from typing import Final

import botocore.exceptions as sdk

from dovetail.ports.failures import Failure, Forbidden, Refused, Throttled, Unauthenticated, Unreachable

NOT_FOUND: Final = frozenset(
    {
        "InvalidInstanceID.NotFound",
        "InvalidLaunchTemplateName.NotFoundException",
        "InvalidLaunchTemplateId.NotFound",
        "InvalidCapacityReservationId.NotFound",
        "InvalidCapacityReservationId.Malformed",  # what a class says may have no form that EC2 gives to ids
        "InvalidPlacementGroup.Unknown",
        "InvalidPlacementGroupId.NotFound",
        "InvalidPlacementGroupId.Malformed",
        "QueueDoesNotExist",
        "AWS.SimpleQueueService.NonExistentQueue",
        "NoSuchEntity",
        "ParameterNotFound",
        "ParameterVersionNotFound",
        "ResourceNotFoundException",
    }
)
TEMPLATE_EXISTS: Final = "InvalidLaunchTemplateName.AlreadyExistsException"
TEMPLATE_MISSING: Final = "InvalidLaunchTemplateName.NotFoundException"
DRY_RUN_ALLOWED: Final = "DryRunOperation"
UNAUTHORISED: Final = frozenset(
    {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthorizationError"}
)

THROTTLED: Final = frozenset(
    {
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
        "EC2ThrottledException",
        "SlowDown",
        "BandwidthLimitExceeded",
        "ResourceCountLimitExceeded",
    }
)
NOT_AUTHORISED_FOR_IMAGES: Final = "Not authorized for images"
_EXPIRED: Final = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "RequestExpired",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "SignatureDoesNotMatch",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "IncompleteSignature",
    }
)
_NOT_NOW: Final = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServiceError",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
        "ServerException",
        "ServiceFailure",
    }
)
# Codes that say nothing certain and are the reason of a launch that failed all the same (AWS-90).
_REASONS: Final = frozenset({"InternalError", "RequestLimitExceeded"})
_NO_CREDENTIALS: Final = (
    sdk.NoCredentialsError,
    sdk.PartialCredentialsError,
    sdk.CredentialRetrievalError,
    sdk.TokenRetrievalError,
    sdk.SSOError,
    sdk.MetadataRetrievalError,
)
_OUR_FAULT: Final = (sdk.ParamValidationError, sdk.NoRegionError, sdk.UnknownServiceError, sdk.DataNotFoundError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """AWS's refusal of one call: nothing was done."""

    code: str
    message: str


def is_passing(code: str) -> bool:
    """Whether a code only asks for time, and says nothing of what was asked for."""
    return code in THROTTLED or code in _NOT_NOW


def denial_of(error: sdk.ClientError) -> Denied | None:
    """The refusal that an error stands for; None if it proves nothing or only asks for time."""
    code, status = code_of(error), _status(error)
    if is_passing(code) or _is_about_credentials(error) or status >= 500:
        return None
    return Denied(code=code, message=message_of(error))


def failure_of(subject: str, error: Exception) -> Failure:
    if isinstance(error, sdk.ClientError):
        return _answered(subject, error)
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, _NO_CREDENTIALS) and not _is_of_a_connection(error):
        return Unauthenticated(subject, f"no valid AWS credentials ({text})")
    if isinstance(error, _OUR_FAULT):
        return Refused(subject, text)
    return Unreachable(subject, text)  # connections, time-outs, answers that cannot be parsed


def _is_of_a_connection(error: BaseException | None) -> bool:
    """Whether it began with one that did not come about: Pod Identity's agent, say, does not listen yet."""
    while error is not None and not isinstance(error, sdk.ConnectionError | sdk.HTTPClientError):
        error = error.__context__  # which the SDK does not name as its cause
    return error is not None


def refusal(subject: str, denied: Denied) -> Failure:
    """The failure for a refusal that no caller branches on."""
    text = f"{denied.code}: {denied.message}"
    return Forbidden(subject, text) if denied.code in UNAUTHORISED else Refused(subject, text)


def code_of(error: sdk.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def message_of(error: sdk.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))


def _is_about_credentials(error: sdk.ClientError) -> bool:
    return code_of(error) in _EXPIRED and NOT_AUTHORISED_FOR_IMAGES not in message_of(error)


def _status(error: sdk.ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _answered(subject: str, error: sdk.ClientError) -> Failure:
    failure = _by_code(subject, error)
    failure.reason = code_of(error) if code_of(error) in _REASONS else ""
    return failure


def _by_code(subject: str, error: sdk.ClientError) -> Failure:
    code, text = code_of(error), f"{code_of(error)}: {message_of(error)}"
    if code in THROTTLED:
        return Throttled(subject, text)
    if _is_about_credentials(error):
        clock = ", or not the time of our clock" if code == "RequestExpired" else ""  # EC2 says so of both
        return Unauthenticated(subject, f"AWS does not take our credentials{clock} ({text})")
    if code in _NOT_NOW or _status(error) >= 500:
        return Unreachable(subject, text)
    return refusal(subject, Denied(code=code, message=message_of(error)))
