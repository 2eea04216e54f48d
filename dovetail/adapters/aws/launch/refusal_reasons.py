"""Why a launch was refused, as the claim's condition states it: upstream's reasons, in upstream's order (AWS-90).

A reason follows from EC2's code. Under three codes EC2 refuses many things and names them in the text alone; there the
text decides, but only about the reason shown: whether a launch is retried never depends on words (decision 18).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from dovetail.adapters.aws.failures import NOT_AUTHORISED_FOR_IMAGES, UNAUTHORISED

NO_ADDRESSES: Final = "InsufficientFreeAddressesInSubnet"
SPOT_ROLE: Final = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
SPOT_ROLE_MISSING: Final = "SpotSLRCreationFailed"
LAUNCH_FAILED: Final = "LaunchFailed"
IMAGE_REFUSALS: Final = frozenset({"InvalidAMIID", "AMINotFound"})  # the image is not there, or is no more

Refusal = tuple[str, str]  # EC2's code and text


class _Sign(NamedTuple):
    """How a reason is recognised: by a code and, if the code means many things, by words in its text."""

    code: str
    words: str = ""

    def shows_in(self, refusal: Refusal) -> bool:
        code, text = refusal
        return code == self.code and self.words.lower() in text.lower()


_REASONS: Final[tuple[tuple[str, tuple[_Sign, ...]], ...]] = (
    (SPOT_ROLE_MISSING, (_Sign(SPOT_ROLE),)),
    ("AMIAuthorizationFailure", (_Sign("AuthFailure", NOT_AUTHORISED_FOR_IMAGES),)),
    ("Unauthorized", tuple(_Sign(code) for code in (*sorted(UNAUTHORISED), "AuthFailure"))),
    ("SecurityGroupSubnetVPCMismatch", (_Sign("InvalidParameterCombination"),)),
    (
        "InstanceProfileNameInvalid",
        (
            _Sign("InvalidIamInstanceProfile"),
            _Sign("InvalidParameterValue", "iamInstanceProfile.name is invalid"),
            _Sign("InvalidParameterValue", "Invalid IAM Instance Profile"),
        ),
    ),
    (
        "LaunchTemplateNotFound",
        (_Sign("InvalidLaunchTemplateName.NotFoundException"), _Sign("InvalidLaunchTemplateId.NotFound")),
    ),
    (
        "UserDataSizeLimitExceeded",
        (
            _Sign("InvalidUserData.Malformed", "limited to 16384 bytes"),
            _Sign("InvalidParameterValue", "User data is limited to 16384 bytes"),
        ),
    ),
    ("InvalidAMIID", (_Sign("InvalidAMIID.Malformed"), _Sign("InvalidAMIID.NotFound"))),
    ("AMINotFound", (_Sign("InvalidAMIID.Unavailable"),)),
    ("RequestLimitExceeded", (_Sign("RequestLimitExceeded"),)),
    ("InternalError", (_Sign("InternalError"),)),
    ("FreeTierIneligible", (_Sign("FreeTierRestriction"),)),
    ("FleetQuotaExceeded", (_Sign("MaxFleetCountExceeded"),)),
    ("AccountPendingVerification", (_Sign("PendingVerification"),)),
    ("SpotQuotaExceeded", (_Sign("MaxSpotInstanceCountExceeded"),)),
    ("VCPULimitExceeded", (_Sign("VcpuLimitExceeded"),)),
    ("InsufficientFreeAddressesInSubnet", (_Sign(NO_ADDRESSES),)),
)


def reason_for(refusals: Iterable[Refusal]) -> str:
    given = list(refusals)
    return next(
        (reason for reason, signs in _REASONS if any(sign.shows_in(each) for sign in signs for each in given)),
        LAUNCH_FAILED,
    )
