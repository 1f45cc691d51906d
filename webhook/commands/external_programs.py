"""Starts the programs of other projects: git, helm and kubectl, on files that somebody else wrote.

Every one of them is started here. A program is found outside of the audited files, gets paths that begin with `/`, an
environment that says nothing of the user, an empty home, no standard input, and a bound for its time and its output.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from webhook.errors import ProgramError

MOST_OUTPUT_BYTES: Final = 64 * 1024 * 1024
"""The longest output of a program; a longer one is an error."""
_MOST_MESSAGE_BYTES: Final = 16 * 1024
"""What is kept of the messages of a program."""
_PIECE_BYTES: Final = 1 << 16
_KILLED_S: Final = 5.0
"""How long a killed program may take to end."""
_WITHOUT_NETWORK: Final = ("--user", "--map-current-user", "--net", "--")
"""Options of `unshare` that start a program in a network namespace of its own, where there is no other machine."""


@dataclass(frozen=True, slots=True)
class ExternalProgram:
    """A program that is installed on this machine.

    Args:
        name: as people call it: `helm`.
        command: its absolute path, after that of a program that starts it without a network.
    """

    name: str
    command: tuple[str, ...]

    def run(
        self,
        *arguments: str,
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
        most_bytes: int = MOST_OUTPUT_BYTES,
    ) -> bytes:
        """Run it and return what it prints.

        Args:
            arguments: its arguments; a path among them is absolute.
            timeout_s: after so many seconds it is killed, with all that it started.
            environment: variables besides PATH, HOME and the locale.
            most_bytes: the longest output.

        Raises:
            ProgramError: it failed, with the first of its messages, or went beyond a bound.
        """
        called = " ".join((self.name, *arguments))
        with tempfile.TemporaryDirectory(prefix="claimgate-") as home:
            process = subprocess.Popen(  # noqa: S603 - a list, no shell
                [*self.command, *arguments],
                cwd=home,
                env={**_environment(home), **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            output, messages = _Kept(process.stdout, most_bytes), _Kept(process.stderr, _MOST_MESSAGE_BYTES)
            is_done = _wait_until_done(process, (output, messages), timeout_s)
        if output.is_full:
            raise ProgramError(f"`{called}` printed more than {most_bytes >> 20} MiB")
        if not is_done:
            raise ProgramError(f"`{called}` took longer than {timeout_s:.0f} s")
        if process.returncode:
            why = " ".join(messages.data.decode(errors="replace").split())
            raise ProgramError(f"`{called}` failed: {why[:500] or 'without a message'}")
        return bytes(output.data)


def find_program(name: str, audited: Sequence[str | Path], *, has_network: bool) -> ExternalProgram:
    """Find a program in PATH, but not in a relative folder of it, nor among the audited files.

    Args:
        name: its name.
        audited: the files and folders that somebody else wrote.
        has_network: whether it may reach other machines. Else it gets a network namespace without any, where the system
            grants one.

    Raises:
        ProgramError: it is not installed.
    """
    path = os.pathsep.join(_trusted_folders(audited))
    program_path = shutil.which(name, path=path)
    if program_path is None:
        raise ProgramError(f"`{name}` is not installed or not in PATH; folders among the audited files do not count")
    return ExternalProgram(name, (*(() if has_network else _without_network(path)), program_path))


def _trusted_folders(audited: Sequence[str | Path]) -> list[str]:
    roots = [os.path.realpath(each) for each in audited]
    return [
        folder
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if Path(folder).is_absolute() and not any(Path(os.path.realpath(folder)).is_relative_to(root) for root in roots)
    ]


def _without_network(path: str) -> tuple[str, ...]:
    """Return what starts a program without a network; nothing where the system does not grant that."""
    unshare, true = shutil.which("unshare", path=path), shutil.which("true", path=path)
    if unshare is None or true is None:
        return ()
    command = (unshare, *_WITHOUT_NETWORK)
    done = subprocess.run(  # noqa: S603 - a list, no shell
        (*command, true), check=False, env={}, cwd="/", timeout=10, capture_output=True, stdin=subprocess.DEVNULL
    )
    return command if done.returncode == 0 else ()


def _environment(home: str) -> dict[str, str]:
    """Return the whole environment: what users set for helm, kubectl or git is not in it."""
    path = os.pathsep.join(each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if each[:1] == "/")
    return {"PATH": path, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


class _Kept:
    """What a program prints, up to a bound. The rest is read and dropped, so that the program is not held up."""

    def __init__(self, stream: IO[bytes] | None, most_bytes: int) -> None:
        """Begin to read."""
        self.data = bytearray()
        self.is_full = False
        self._most_bytes = most_bytes
        self.reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self.reader.start()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while piece := stream.read1(_PIECE_BYTES):  # type: ignore[attr-defined]
                free_bytes = self._most_bytes - len(self.data)
                self.data += piece[:free_bytes]
                self.is_full |= len(piece) > free_bytes


def _wait_until_done(process: subprocess.Popen[bytes], printed: Sequence[_Kept], timeout_s: float) -> bool:
    """Wait for a program and for all that write where it writes; kill them when their time is over."""
    deadline = time.monotonic() + timeout_s
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout_s)
        for each in printed:
            each.reader.join(max(0.0, deadline - time.monotonic()))
    is_done = process.poll() is not None and not any(each.reader.is_alive() for each in printed)
    if not is_done:
        _kill(process)
        for each in printed:
            each.reader.join(_KILLED_S)
    return is_done


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait(_KILLED_S)
