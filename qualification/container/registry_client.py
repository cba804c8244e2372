"""Pushing an image to a registry as the bytes that we hashed, and asking a registry what it holds.

An engine's own push compresses layers and drops annotations, so its digest is its own; this client moves our manifest
and index unchanged. Plain HTTP is spoken to loopback addresses only. Source: the OCI distribution specification 1.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urljoin

import httpx

from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.oci import INDEX_TYPE, MANIFEST_TYPE, Blob, Image

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_ACCEPT = ", ".join(
    (
        INDEX_TYPE,
        MANIFEST_TYPE,
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A manifest or index as a registry returned it."""

    media_type: str
    content: bytes


class RegistryClient:
    """One repository of one registry. Use as a context manager."""

    def __init__(self, address: str, repository: str) -> None:
        scheme = "http" if address.rpartition(":")[0] in _LOOPBACK or address in _LOOPBACK else "https"
        self._address = address
        self._base = f"{scheme}://{address}/v2/{repository}"
        self._client = httpx.Client(timeout=60.0, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def push(self, image: Image) -> None:
        """Send layers, configuration, manifest and index, each under its own digest.

        Raises:
            ContainerFault: `registry_refuses`, with what was refused and how.
        """
        for layer in image.layers:
            self._send_layer(layer.path, layer.digest, layer.size)
        self._send_blob(image.config)
        self._send_manifest(image.manifest)
        self._send_manifest(image.index)

    def manifest(self, digest: str) -> Stored:
        """The manifest or index stored under `digest`.

        Raises:
            ContainerFault: `registry_refuses` where the registry has no such digest or does not answer.
        """
        answer = self._ask("GET", f"{self._base}/manifests/{digest}", headers={"accept": _ACCEPT})
        self._expect(answer, 200, f"manifest {digest}")
        return Stored(media_type=answer.headers.get("content-type", ""), content=answer.content)

    def _send_layer(self, path: Path, digest: str, size: int) -> None:
        if self._has(digest):
            return
        with path.open("rb") as stream:
            self._upload(digest, size, iter(lambda: stream.read(1 << 20), b""))

    def _send_blob(self, blob: Blob) -> None:
        if not self._has(blob.digest):
            self._upload(blob.digest, len(blob.content), iter((blob.content,)))

    def _has(self, digest: str) -> bool:
        return self._ask("HEAD", f"{self._base}/blobs/{digest}").status_code == 200

    def _upload(self, digest: str, size: int, content: object) -> None:
        opened = self._ask("POST", f"{self._base}/blobs/uploads/")
        self._expect(opened, 202, f"upload of {digest}")
        place = httpx.URL(urljoin(f"{self._base}/", opened.headers["location"])).copy_merge_params({"digest": digest})
        headers = {"content-type": "application/octet-stream", "content-length": str(size)}
        self._expect(self._ask("PUT", place, headers=headers, content=content), 201, f"blob {digest}")

    def _send_manifest(self, blob: Blob) -> None:
        answer = self._ask(
            "PUT",
            f"{self._base}/manifests/{blob.digest}",
            headers={"content-type": blob.media_type},
            content=blob.content,
        )
        self._expect(answer, 201, f"manifest {blob.digest}")

    def _ask(
        self, method: str, url: str | httpx.URL, *, headers: dict[str, str] | None = None, content: object = None
    ) -> httpx.Response:
        try:
            return self._client.request(method, url, headers=headers, content=content)  # type: ignore[arg-type]  # bytes or an iterator of them
        except httpx.HTTPError as error:
            raise ContainerFault(
                FaultCode.REGISTRY_REFUSES,
                f"the registry at {self._address} did not answer {method}: {type(error).__name__}; is it running?",
            ) from error

    def _expect(self, answer: httpx.Response, status: int, what: str) -> None:
        if answer.status_code != status:
            raise ContainerFault(
                FaultCode.REGISTRY_REFUSES,
                f"the registry at {self._address} refused {what} with HTTP {answer.status_code}: {answer.text[:200]}",
            )
