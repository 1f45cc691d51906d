"""`claimgate demo`: shows five scenes on this machine: serve, deny, translate, audit, simulate.

Each scene prints the command line of a verb, then runs the verb. A user can repeat the command line. The server is a
separate process with the log server.log.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Annotated, Final

import typer

from webhook.commands import audit, certs, replay, simulate
from webhook.errors import ConfigurationError
from webhook.input import shipped
from webhook.yamltext import input_files

START_S: Final = 30
"""The most seconds until the server answers. A slow machine needs about one second."""
_WIDTH: Final = 80
"""The most characters of a line, also in a pipe and on a wider terminal."""
_CONTINUED: Final = " \\"
"""The end of a line that the next line continues, as in a shell."""
_CLAIMGATE: Final = (sys.executable, "-P", "-m", "webhook")
"""Starts claimgate as a separate process. With -P, Python imports nothing from the current folder."""


def command(
    *,
    directory: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where the certificate and the server's log go.")
    ] = Path(".demo"),
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Only run the server, with an example cluster, on port 8443 until Ctrl-C."),
    ] = False,
) -> int:
    """Show in five scenes what claimgate does: serve, deny, translate, audit, simulate.

    Exits with 0 if every scene ran. Some scenes show mistakes on purpose.
    """
    samples = Path(input_files.path_as_shown(shipped.samples_folder()))
    os.environ["COLUMNS"] = str(min(_WIDTH, shutil.get_terminal_size().columns))
    if serve:
        _issue_certificate(directory)
        return _replace_process_by_server(directory, samples / "context")
    _print_scene(1, "A server answers the API server over HTTPS.")
    _issue_certificate(directory)
    with _serve_until_done(directory) as url:
        _print_scene(2, "It denies a Pod that would fail later, and says how to fix it.")
        _replay(samples / "demo" / "claim.yaml", url, directory / "ca.crt")
        _print_scene(3, "It translates the portable limit `gpu` to the vendor's resource.")
        _replay(samples / "demo" / "pod.yaml", url, directory / "ca.crt")
    _print_scene(4, "In CI, an audit finds mistakes in files before they reach a cluster.")
    _audit(samples / "demo" / "torchrun.yaml")
    _print_scene(5, "A simulation says why a job does not start.")
    _simulate(samples / "demo" / "job.yaml")
    sys.stdout.write(_NEXT)
    return 0


_NEXT: Final = "Next: `claimgate audit DIR` checks your files, `claimgate ui` opens a playground\n"


def _print_scene(number: int, sentence: str) -> None:
    sys.stdout.write(f"{chr(10) if number > 1 else ''}{number}. {sentence}\n")


def _print_command(*arguments: str) -> None:
    """Print a command line. A long command line is split: each line but the last ends with a backslash, for a shell."""
    first, *options = shlex.join(arguments).split(" --")
    line = f"$ claimgate {first}"
    for option in options:
        if len(f"{line} --{option}") > _WIDTH - len(_CONTINUED):
            sys.stdout.write(f"{line}{_CONTINUED}\n")
            line = "   "
        line = f"{line} --{option}"
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _issue_certificate(directory: Path) -> None:
    exists = (directory / "tls.crt").exists()
    _print_command("certs", "rotate" if exists else "issue", "--dir", str(directory))
    with redirect_stdout(StringIO()):  # names and dates of certificates would only distract
        (certs.rotate if exists else certs.issue)(directory=directory)


def _server_arguments(directory: Path, port: int) -> list[str]:
    files = ["--tls-cert", str(directory / "tls.crt"), "--tls-key", str(directory / "tls.key")]
    return ["serve", "--host", "127.0.0.1", "--port", str(port), *files]


def _replace_process_by_server(directory: Path, context: Path) -> int:
    arguments = [*_server_arguments(directory, 8443), "--context", str(context), "--context-is-whole"]
    _print_command(*arguments)
    trust = f"--server https://localhost:8443 --ca {directory / 'ca.crt'}"
    sys.stdout.write(f"In another terminal: claimgate replay {context.parent / 'reviews'} {trust}\n")
    sys.stdout.flush()
    os.execv(sys.executable, [*_CLAIMGATE, *arguments])  # noqa: S606 - this program itself


@contextmanager
def _serve_until_done(directory: Path) -> Iterator[str]:
    """Start a server on a free port, yield its address, and stop the server at the end."""
    arguments = _server_arguments(directory, 0)
    _print_command(*arguments)
    log = directory / "server.log"
    with log.open("wb") as stream:
        started = [*_CLAIMGATE, *arguments, "--drain", "0"]
        process = subprocess.Popen(started, stderr=stream)  # noqa: S603 - this program itself
    try:
        port, elapsed_ms = _wait_for_port(process, log)
        sys.stdout.write(f"ready on port {port} after {elapsed_ms} ms; its log is {log}\n")
        yield f"https://localhost:{port}"
    finally:
        process.terminate()
        process.wait(timeout=START_S)


def _wait_for_port(process: subprocess.Popen[bytes], log: Path) -> tuple[int, int]:
    """Read the log until the server is ready. Return its port and the milliseconds of the start.

    Raises:
        ConfigurationError: the server ended, or was not ready in time.
    """
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        lines = log.read_text(encoding="utf-8").splitlines()
        for entry in (json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")):
            if entry.get("message") == "ready":
                return int(entry["port"]), int(entry["elapsed_ms"])
        if process.poll() is not None:
            raise ConfigurationError(f"the server ended with code {process.returncode}: {' '.join(lines)}")
        time.sleep(0.02)
    raise ConfigurationError(f"the server was not ready after {START_S} seconds; its log is {log}")


def _replay(review: Path, url: str, ca: Path) -> None:
    _print_command("replay", str(review), "--server", url, "--ca", str(ca))
    replay.command([str(review)], server=url, ca=ca)


def _audit(manifest: Path) -> None:
    _print_command("audit", str(manifest))
    audit.command([str(manifest)])


def _simulate(job: Path) -> None:
    _print_command("simulate", str(job))
    simulate.command(str(job))
