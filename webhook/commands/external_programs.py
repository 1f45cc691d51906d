"""Starts the external programs git, helm, kubectl and unshare, for files of other people.

A program gets a fixed environment, an empty home as its working directory, no standard input, and bounds of time,
output and memory. A program is never started from an audited folder. docs/untrusted-files.md lists the programs and
their callers.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from msgspec import Struct, field

from webhook.errors import ProgramError
from webhook.text.terminal import one_line

_PIECE_BYTES: Final = 1 << 16
_MAX_STDERR_BYTES: Final = 1 << 14
_MAX_MESSAGE: Final = 500
"""Characters of a program's standard error that a message quotes."""
_WARNINGS: Final = ("# Warning: ", "walk.go:")
"""Warnings of kustomize about deprecated fields, and of helm about links, begin with these texts. Messages leave these
warnings out, to have room for the cause of a failure.
"""
_LIMITS: Final = {"RLIMIT_DATA": 4 << 30, "RLIMIT_AS": 32 << 30, "RLIMIT_FSIZE": 1 << 30, "RLIMIT_CORE": 0}
"""Limits in bytes for memory, address space, a written file and a core dump. Only on Linux.

Programs of Go 1.26 reserve 5 GiB of address space when they start. With a smaller limit, some starts fail.
"""
_NO_PROXY_LISTENS: Final = "http://127.0.0.1:9"
_WITHOUT_NETWORK: Final = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NO_PROXY_LISTENS),
    "GIT_ALLOW_PROTOCOL": "none",
}
"""On systems without network namespaces, these variables block the network for git and HTTP clients in Go."""
_WITH_NETWORK: Final = {"GIT_ALLOW_PROTOCOL": "https"}
"""Lets git fetch only over https: no files of this machine, no SSH keys."""
_GIT: Final = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
}


class Invocation(Struct, frozen=True, kw_only=True):
    """A program to start.

    Args:
        program: the name, which is searched in PATH.
        options: the subcommand and options, which never come from an audited file.
        operands: names and paths. An operand must not begin with `-`.
        separator: the word that ends the options; "" for a program without such a word.
        environment: variables in addition to the fixed variables.
        timeout_s: the most seconds that the program may run.
        max_bytes: the most bytes that the program may print.
        network: whether the program may use the network.
    """

    program: str
    options: Sequence[str] = ()
    operands: Sequence[str] = ()
    separator: str = "--"
    environment: Mapping[str, str | None] = field(default_factory=dict)
    timeout_s: float
    max_bytes: int
    network: bool = False

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments.

        Raises:
            ProgramError: an operand could be read as an option.
        """
        for each in self.operands:
            if each.startswith("-") or not each:
                raise ProgramError(f"`{self.program}` is not started: `{each}` could be read as an option")
        separator = [self.separator] if self.separator and self.operands else []
        return (*self.options, *separator, *self.operands)


class Output(Struct, frozen=True, kw_only=True):
    """The output of a program. `message` is the beginning of its standard error on one line."""

    code: int
    stdout: bytes
    message: str


class ExternalPrograms:
    """Finds and starts programs outside of audited folders. An audited folder includes the git work tree around it."""

    def __init__(self, audited: Iterable[str | Path]) -> None:
        named = [os.path.realpath(each) for each in audited]
        trees = [enclosing_work_tree(each) for each in named]
        self._audited = tuple(dict.fromkeys([*named, *(each for each in trees if each)]))
        self._folders = [each for each in os.get_exec_path() if Path(each).is_absolute() and not self._is_audited(each)]
        self._network_prefix: tuple[str, ...] | None = None

    def find(self, name: str) -> str:
        """Return the absolute path of a program.

        Raises:
            ProgramError: the program is not in PATH, or only in relative or audited folders of PATH.
        """
        for path in _executables(self._folders, name):
            if not self._is_audited(path):
                return path
        if next(_executables(os.get_exec_path(), name), None):
            raise ProgramError(
                f"`{name}` is only in relative or audited folders of PATH, from which claimgate starts nothing"
            )
        raise ProgramError(f"`{name}` is not installed or not in PATH")

    def run(self, invocation: Invocation) -> Output:
        """Start a program and return its output, with any exit code.

        Raises:
            ProgramError: the program does not exist, an operand looks like an option, or a bound was exceeded.
        """
        command = (self.find(invocation.program), *invocation.arguments())
        if not invocation.network:
            command = (*self._prefix_without_network(), *command)
        return self._run(command, invocation)

    def _run(self, command: Sequence[str], invocation: Invocation) -> Output:
        with tempfile.TemporaryDirectory(prefix="claimgate-") as home:
            try:
                process = subprocess.Popen(  # noqa: S603 - an absolute path and a list, no shell
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=home,
                    env=self._environment(invocation, home),
                    start_new_session=True,
                )
            except OSError as error:
                failure = f"`{invocation.program}` cannot be started: {str(error.strerror).lower()}"
                raise ProgramError(failure) from None
            with process:
                try:
                    _limit_process(process.pid)
                    stdout, stderr = _read_until_end(process, invocation)
                finally:
                    _end_group(process)
        lines = stderr.decode(errors="replace").splitlines()
        words = " ".join(line for line in lines if not line.startswith(_WARNINGS)).split()
        message = one_line(" ".join(words))[:_MAX_MESSAGE]
        return Output(code=process.returncode, stdout=stdout, message=message)

    def _environment(self, invocation: Invocation, home: str) -> dict[str, str]:
        """Return all variables of a program. Of the variables of this process, only the folders of PATH are passed on.

        `invocation.environment` can add variables.
        """
        variables = {
            "PATH": os.pathsep.join(self._folders),
            "LC_ALL": "C",
            "HOME": home,
            "TMPDIR": home,
            **_GIT,
            **(_WITH_NETWORK if invocation.network else _WITHOUT_NETWORK),
            **invocation.environment,
        }
        return {name: value for name, value in variables.items() if value is not None}

    def _prefix_without_network(self) -> tuple[str, ...]:
        """Return the command that starts a program in an empty network namespace; () if no command can do this."""
        if self._network_prefix is None:
            self._network_prefix = next(filter(self._is_usable_prefix, self._unshare_commands()), ())
        return self._network_prefix

    def _unshare_commands(self) -> Iterator[tuple[str, ...]]:
        with suppress(ProgramError):
            unshare = self.find("unshare")
            yield unshare, "--net", "--"
            yield unshare, "--map-root-user", "--net", "--"

    def _is_usable_prefix(self, prefix: tuple[str, ...]) -> bool:
        probe = Invocation(program="unshare", timeout_s=10, max_bytes=_PIECE_BYTES)
        try:
            return self._run((*prefix, prefix[0], "--version"), probe).code == 0
        except ProgramError:
            return False

    def _is_audited(self, path: str) -> bool:
        """Links are followed."""
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(each) for each in self._audited)


def enclosing_work_tree(folder: str) -> str:
    """Return the closest folder with a `.git` at or above a real path; "" if there is none."""
    path = Path(folder)
    return next((str(each) for each in (path, *path.parents) if os.path.lexists(each / ".git")), "")


def _executables(folders: Iterable[str], name: str) -> Iterator[str]:
    for folder in folders:
        path = os.path.join(folder, name)  # noqa: PTH118 - the folder of PATH, not resolved
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - as above
            yield path


def _limit_process(pid: int) -> None:
    prlimit = getattr(resource, "prlimit", None)
    if prlimit is None:
        return
    with suppress(ProcessLookupError):  # the process has ended already
        for name, limit in _LIMITS.items():
            prlimit(pid, getattr(resource, name), (limit, limit))


def _read_until_end(process: subprocess.Popen[bytes], invocation: Invocation) -> tuple[bytes, bytes]:
    """Return what a program prints on stdout, and the start of its stderr.

    Raises:
        ProgramError: the program exceeds a bound.
    """
    end = time.monotonic() + invocation.timeout_s
    late = ProgramError(f"`{invocation.program}` took longer than {invocation.timeout_s:.0f} s")
    assert process.stdout is not None
    assert process.stderr is not None
    printed: dict[IO[bytes], bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for stream in printed:
            selector.register(stream, selectors.EVENT_READ, stream)
        while selector.get_map():
            ready = selector.select(max(end - time.monotonic(), 0))
            if not ready:
                raise late
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE_BYTES)
                if not piece:
                    selector.unregister(key.fileobj)
                elif key.data is process.stdout or len(printed[key.data]) < _MAX_STDERR_BYTES:
                    printed[key.data] += piece
            if len(printed[process.stdout]) > invocation.max_bytes:
                raise ProgramError(f"`{invocation.program}` printed more than {invocation.max_bytes >> 20} MiB")
            if time.monotonic() > end:
                raise late
    try:
        process.wait(max(end - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        raise late from None
    return bytes(printed[process.stdout]), bytes(printed[process.stderr])


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group of a program, with all processes that the program started."""
    with suppress(ProcessLookupError, PermissionError):  # the processes have ended; macOS refuses to signal zombies
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
