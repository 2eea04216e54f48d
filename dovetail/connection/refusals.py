"""Why a connection could not be made, in words that name the setting.

The transport explains it in its own words and deep inside: by the other side's alert, or by what its library found
wrong with the other side's certificate. Often the alert is lost and the other side has merely closed the connection;
then the likely reason is the credential that we did not send, or did.
"""

from typing import Final

from temporalio.envconfig import ClientConnectConfig
from temporalio.service import TLSConfig

_MEANINGS: Final = (
    (
        ("alert: CertificateRequired",),
        "the server asks for a client certificate: set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH",
    ),
    (("alert: CertificateExpired",), "the client certificate has expired (TEMPORAL_TLS_CLIENT_CERT_PATH)"),
    (
        ("alert: UnknownCA", "alert: BadCertificate", "alert: Certificate", "alert: AccessDenied", "alert: Decrypt"),
        "the server refuses the client certificate (TEMPORAL_TLS_CLIENT_CERT_PATH)",
    ),
    (
        ("UnknownIssuer", "CaUsedAsEndEntity"),
        "the server's certificate is of an authority that is not trusted here: set TEMPORAL_TLS_SERVER_CA_CERT_PATH",
    ),
    (
        ("NotValidForName",),
        "the server's certificate is for another name: set TEMPORAL_TLS_SERVER_NAME, or the right address",
    ),
    (("InvalidCertificate(Expired",), "the server's certificate has expired"),
    (("KeyMismatch",), "the client certificate and its key do not belong together"),
    (("InvalidContentType",), "no TLS is spoken there: unset TEMPORAL_TLS, or set another port"),
    (
        ("Unauthenticated", "PermissionDenied"),
        "the server refuses us: is the API key (TEMPORAL_API_KEY, DOVETAIL_TEMPORAL_API_KEY_FILE) valid for it?",
    ),
)

_CLOSED: Final = ("UnexpectedEof", "connection closed", "BrokenPipe", "ConnectionReset", "FRAME_SIZE", "frame with")


def meaning_of(text: str, options: ClientConnectConfig) -> str:
    """What the transport's words mean, and the setting that mends it; empty where they are not known."""
    for signs, meaning in _MEANINGS:
        if any(sign in text for sign in signs):
            return meaning
    return _why_closed(options) if any(sign in text for sign in _CLOSED) else ""


def _why_closed(options: ClientConnectConfig) -> str:
    tls = options.get("tls")
    if not tls:
        return "the server closes the connection; it may speak TLS only: set TEMPORAL_TLS"
    if isinstance(tls, TLSConfig) and tls.client_cert:
        return "the server closes the connection; it may refuse the client certificate (TEMPORAL_TLS_CLIENT_CERT_PATH)"
    return (
        "the server closes the connection; it may ask for a client certificate: "
        "set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH"
    )
