"""Keeps certificates in a folder or in a Secret, with the same four files.

`ca.crt` is the bundle that clients trust, the newest authority first; `ca.key` is this authority's key. `tls.crt` and
`tls.key` are the serving pair; a serving Pod mounts only these two.
"""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from certs import CertificateError

CA, CA_KEY, SERVING, SERVING_KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
FILES: Final = (CA, CA_KEY, SERVING, SERVING_KEY)


class Store(Protocol):
    """A place for the four files, which may be absent."""

    def read(self) -> Mapping[str, bytes]:
        """Return the stored files."""
        ...

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write some files."""
        ...


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with keys for its owner only. No file is ever half written."""

    path: Path

    def read(self) -> Mapping[str, bytes]:
        """Return the stored files.

        Raises:
            CertificateError: a file cannot be read.
        """
        try:
            return {name: (self.path / name).read_bytes() for name in FILES if (self.path / name).exists()}
        except OSError as error:
            raise CertificateError(f"{error.filename}: {str(error.strerror).lower()}") from None

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write some files. Certificates come last: a watcher sees a certificate only with its key.

        Raises:
            CertificateError: a file cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for name in sorted(files, key=lambda name: not name.endswith(".key")):
                self._replace(name, files[name])
        except OSError as error:
            raise CertificateError(f"{error.filename}: {str(error.strerror).lower()}") from None

    def _replace(self, name: str, content: bytes) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self.path, prefix=f".{name}.")  # only its owner can read it
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        if not name.endswith(".key"):
            Path(temporary).chmod(0o644)
        Path(temporary).replace(self.path / name)


@dataclass(frozen=True, slots=True)
class Secret:
    """An Opaque Secret, through a CoreV1Api of the kubernetes package (see certs/cluster.py)."""

    namespace: str
    name: str
    api: Any

    def read(self) -> Mapping[str, bytes]:
        """Return the stored files; none without the Secret.

        Raises:
            CertificateError: the cluster does not allow it.
        """
        data = self._data() or {}
        return {name: base64.b64decode(data[name]) for name in FILES if data.get(name)}

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write some files in one update; create the Secret if needed.

        Raises:
            CertificateError: the cluster refuses.
        """
        from certs.cluster import refused

        data = {name: base64.b64encode(content).decode() for name, content in files.items()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": self.name}, "data": data}
        with refused(f"secret {self.namespace}/{self.name}"):
            if self._data() is None:
                self.api.create_namespaced_secret(self.namespace, {**body, "type": "Opaque"})
            else:
                self.api.patch_namespaced_secret(self.name, self.namespace, body)

    def _data(self) -> dict[str, str] | None:
        from certs.cluster import none_if_absent, refused

        with refused(f"secret {self.namespace}/{self.name}"):
            secret = none_if_absent(lambda: self.api.read_namespaced_secret(self.name, self.namespace))
        return None if secret is None else (secret.data or {})
