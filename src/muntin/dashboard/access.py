"""Who may use the page: only programs on this machine, or those that have the token."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

__all__ = ["COOKIE", "Access", "is_loopback"]

COOKIE = "muntin_token"


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach the host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """The rules for requests to a server on this host and port.

    On loopback the request must name loopback as its host: so no other web site reaches the page by DNS
    rebinding. On other hosts it must have the token, first in its address, then in a cookie. A request
    that changes something must come from the page itself.
    """

    host: str
    port: int
    token: str | None = field(default=None)

    @classmethod
    def to(cls, host: str, port: int, token: str | None = None) -> Access:
        """The rules for a host. Without a token, any host but loopback gets a random one."""
        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(24)
        return cls(host, port, token)

    def refusal(self, headers: Mapping[str, str], query_token: str | None, changes: bool) -> str | None:
        """Why this request is refused; None where it is not.

        >>> Access.to("127.0.0.1", 8765).refusal({"host": "evil.example"}, None, False)
        'the page is served as http://127.0.0.1:8765: got the host "evil.example"'
        """
        host = headers.get("host", "")
        if is_loopback(self.host) and not self._names_loopback(host):
            return f'the page is served as {self.address}: got the host "{host[:80]}"'
        if self.token is not None and not self._knows(headers, query_token):
            return "the page needs its token: open the address that was printed when it started"
        if changes:
            origin = headers.get("origin", "none")
            if origin not in (f"http://{host}", f"https://{host}"):
                return f'a change must come from the page itself: got the origin "{origin[:80]}"'
        return None

    @property
    def address(self) -> str:
        """Where a browser on this machine finds the page, without the token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def _names_loopback(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            return is_loopback(parts.hostname or "") and (parts.port or 80) == self.port
        except ValueError:
            return False

    def _knows(self, headers: Mapping[str, str], query_token: str | None) -> bool:
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return False
        given = query_token or (cookies[COOKIE].value if COOKIE in cookies else "")
        return hmac.compare_digest(given.encode(), (self.token or "").encode())
