"""Trust in a server whose certificate has another name than its address (`tls-server-name` of a kubeconfig)."""

import ssl
from typing import Any, Self


class NamedServer(ssl.SSLContext):
    """The server must present a certificate for that name, whatever its address."""

    name: str

    def __new__(cls, name: str) -> Self:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made.name = name
        return made

    def wrap_socket(self, *arguments: Any, **named: Any) -> ssl.SSLSocket:
        """Use our name instead of the address that `http.client` passes."""
        return super().wrap_socket(*arguments, **{**named, "server_hostname": self.name})
