"""Where an engine listens: an origin and a path prefix, taken from a URL and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from qualification.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Target:
    """One endpoint. `prefix` is empty or starts with `/` and has no trailing slash."""

    host: str
    port: int
    tls: bool = False
    prefix: str = ""

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host_header}{self.prefix}"


def parse_target(url: str) -> Target:
    """A target from `http://host[:port][/prefix]` (or https).

    Raises:
        UsageError: another scheme, no host, an impossible port, credentials, a query or a fragment.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"endpoint {url!r} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"endpoint {url!r} must look like http://host:port")
    if parts.username is not None or parts.query or parts.fragment:
        raise UsageError("an endpoint carries no credentials, query or fragment: they would end up in the evidence")
    tls = parts.scheme == "https"
    fallback = 443 if tls else 80
    return Target(host=parts.hostname, port=fallback if port is None else port, tls=tls, prefix=parts.path.rstrip("/"))
