"""How an adapter refuses: with a problem document, as the wire contract wants it."""

from __future__ import annotations


class Refused(Exception):
    """A request that is answered with a problem document."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


def problem(refusal: Refused) -> dict[str, str | int]:
    """The document of a refusal."""
    return {
        "type": f"urn:assay:problem:{refusal.code}",
        "title": refusal.code.replace("_", " "),
        "status": refusal.status,
        "code": refusal.code,
        "detail": refusal.detail,
    }
