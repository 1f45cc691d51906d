"""Loads the serving certificate, and changes it while the server runs.

A context that took a mismatched pair is broken for all clients. A context with an ECDSA pair keeps serving it when an
RSA pair is loaded. So a changed pair gets a new context, which is tested before it is used. Each handshake
begins with the newest context. A context keeps the keys of its session tickets. So with a new context, a client of a
replaced authority has to show its certificate again.
"""

from __future__ import annotations

import os
import ssl
import stat
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from webhook.errors import ConfigurationError
from webhook.text.wording import counted
from webhook.yamltext.input_files import read_whole

Mark: TypeAlias = tuple[tuple[int, int, int], ...]
"""Modification time, size and inode of each file, which change with the file, also behind a swapped link."""

_ALPN: Final = ["http/1.1"]
"""An API server uses only this for Services, and httptools supports nothing else."""
_TLS_1_2_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Forward secrecy and authenticated encryption; OpenSSL would also offer CBC suites. TLS 1.3 has no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The paths of the serving pair and of the client authority; without `client_ca` any client may call."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def file_states(self) -> Mark:
        """Return modification time, size and inode of all files.

        Raises:
            OSError: one of them does not exist.
        """
        paths = [self.certificate, self.key] + ([self.client_ca] if self.client_ca else [])
        states = [path.stat() for path in paths]
        return tuple((state.st_mtime_ns, state.st_size, state.st_ino) for state in states)


def create_server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return a server context for TLS 1.2 or later with this certificate and key.

    Raises:
        ConfigurationError: a file is missing or unreadable, or key and certificate do not belong together.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(_TLS_1_2_CIPHERS)
    made.set_alpn_protocols(_ALPN)
    try:
        made.load_cert_chain(files.certificate, files.key, password=_refuse_encrypted_key)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigurationError(_explain(files, error)) from None
    if files.client_ca:
        _require_client_certificates(made, files.client_ca)
    return made


def _require_client_certificates(listening: ssl.SSLContext, authority: Path) -> None:
    try:
        listening.load_verify_locations(authority)
    except ssl.SSLError:
        raise ConfigurationError(f"--client-ca: `{authority}` does not contain a PEM certificate") from None
    except OSError as error:
        raise ConfigurationError(f"--client-ca: `{authority}`: {_reason(error)}") from None
    listening.verify_mode = ssl.CERT_REQUIRED


class Certificates:
    """The current TLS context and its certificate. `reload` may be called from any thread, one at a time.

    Attributes:
        context: the context for the next handshake.
        shown: the PEM text of the certificate that new handshakes see.
        trusted: the PEM text of the clients' authority, empty without one. It stays the same object until the
            authority changes.
    """

    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        self._mark = self._read_file_states()
        self.context = create_server_context(files)
        self.shown = read_whole(files.certificate)
        self.trusted = self._authority()

    def reload(self) -> bool:
        """Load the files again if they changed; the next handshake uses them.

        Returns:
            Whether there was a change.

        Raises:
            ConfigurationError: the changed files are not a usable pair; the previous pair stays in use.
        """
        mark = self._read_file_states()
        if mark == self._mark:
            return False
        trusted = self._authority()
        self.context = create_server_context(self.files)
        self.shown = read_whole(self.files.certificate)
        if trusted != self.trusted:
            self.trusted = trusted
        self._mark = mark
        return True

    def _read_file_states(self) -> Mark:
        try:
            return self.files.file_states()
        except OSError as error:
            raise ConfigurationError(_explain(self.files, error)) from None

    def _authority(self) -> bytes:
        try:
            return read_whole(self.files.client_ca) if self.files.client_ca else b""
        except OSError as error:
            raise ConfigurationError(f"--client-ca: `{self.files.client_ca}`: {_reason(error)}") from None


def key_warning(key: Path) -> str:
    """Return that other users can read the private key, and what to do, or "".

    A Secret volume with fsGroup gives the file to root and to a group of the Pod, and the server can read it only
    through this group: so a file of another user that is readable by one of our groups is correct.
    """
    state = key.stat()
    is_foreign = state.st_uid != os.geteuid() and state.st_gid in {os.getegid(), *os.getgroups()}
    forbidden = stat.S_IRWXO | (stat.S_IWGRP if is_foreign else stat.S_IRWXG)
    if not state.st_mode & forbidden:
        return ""
    mode = f"{stat.S_IMODE(state.st_mode):04o}"
    fix = f"chmod 600 {key}, or in a Secret volume defaultMode: 0440 with fsGroup"
    return f"`{key}` has mode {mode}: {fix}"


def _refuse_encrypted_key() -> str:
    """Refuse an encrypted key, because OpenSSL would ask for a passphrase on the terminal and wait for ever."""
    raise ConfigurationError("the private key is encrypted; store it without a passphrase")


def _explain(files: TlsFiles, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        if files.client_ca and str(files.client_ca) == str(error.filename):
            return f"--client-ca: `{files.client_ca}`: no such file"
        missing = [path for path in (files.certificate, files.key) if not path.exists()]
        names = ", ".join(f"`{path}`" for path in missing) or "a certificate file"
        return f"{names}: no such file; issue a pair with `claimgate certs issue`"
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"the key `{files.key}` does not belong to the certificate `{files.certificate}`"
        reason = f": {error.reason.lower().replace('_', ' ')}" if error.reason else ""
        return f"`{files.certificate}` and `{files.key}` are not a PEM certificate and key{reason}"
    return f"`{error.filename or files.certificate}`: {_reason(error)}"


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def describe_wrong_period(begins: datetime, ends: datetime, now: datetime) -> str:
    """Return why a certificate is not valid now, and what to do first; "" if it is valid.

    A clock that is wrong is likely for a certificate of the future, and unlikely for one that expired.
    """
    if now < begins:
        told = f"it is not valid before {_time(begins)}, in {_length(begins - now)}"
        fix = "set this clock right; if it is right, issue a new certificate"
        return f"{told}, and the clock of this machine says {_time(now)}: {fix}"
    if ends < now:
        fix = "issue a new certificate; if the Deployment claimgate-certificates should renew it, read its log"
        clock = f"this machine's clock says {_time(now)}; if that time is wrong, correct the clock"
        return f"it expired at {_time(ends)}, {_length(now - ends)} ago: {fix}; {clock}"
    return ""


def _time(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"


def _length(period: timedelta) -> str:
    """Write a period in the largest unit of which there are two."""
    seconds = int(period.total_seconds())
    units = (("day", 86400), ("hour", 3600), ("minute", 60))
    return next((counted(seconds // size, name) for name, size in units if seconds >= 2 * size), "a minute or two")


@lru_cache(maxsize=2)
def validity_of_certificate(certificate: bytes) -> tuple[datetime, datetime]:
    """Return the times from which and until which the first certificate of PEM text is valid."""
    from certs.issue import read

    facts = read(certificate)[0]
    return facts.not_before, facts.not_after
