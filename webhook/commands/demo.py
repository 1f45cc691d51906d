"""`claimgate demo`: the whole way once: certificate, server, reviews over verified TLS, audit.

Every step is done by the verb it shows, with the command line printed first, so that each can be repeated by hand. The
server is a process of its own; what it logs is in server.log.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from webhook.admission import fixtures
from webhook.admission.phases import ReviewAnswerer, run_phases
from webhook.commands import audit, certs
from webhook.commands.remote import RemoteWebhook
from webhook.errors import ConfigurationError
from webhook.input import documents, shipped
from webhook.report.text_answers import patch_operation_as_text
from webhook.text.terminal import one_line
from webhook.workloads import table
from webhook.yamltext import input_files

if TYPE_CHECKING:
    from rich.table import Table

START_S: Final = 30
"""Seconds that the server may take until it answers; it takes about one second on a slow machine."""
_STEPS: Final = 3
_CLAIMGATE: Final = (sys.executable, "-P", "-m", "webhook")
"""This program as another process; with -P, Python imports nothing from the folder where the demonstration runs."""


def command(
    *,
    directory: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where the certificate and the server's log go.")
    ] = Path(".demo"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Only serve, on port 8443 until Ctrl-C, with the samples' context.")
    ] = False,
) -> int:
    """Issue a certificate, serve, send sample reviews, audit sample manifests, stop.

    Exits with 0 when every review was answered; that some are denied is the point.
    """
    samples = Path(input_files.path_as_shown(shipped.samples_folder()))
    _issue_certificate(directory)
    if serve:
        return _replace_process_by_server(directory, samples / "context")
    with _serve_until_done(directory, samples / "context") as url:
        _send_reviews(url, directory / "ca.crt", samples / "reviews")
    _print_command("audit", str(samples / "manifests"))
    code = audit.command([str(samples / "manifests")])
    sys.stdout.write(f"(exit code {code}: there are findings)\n" if code else "")
    return 0


def _print_command(*arguments: str) -> None:
    sys.stdout.write(f"\n$ claimgate {shlex.join(arguments)}\n")
    sys.stdout.flush()


def _issue_certificate(directory: Path) -> None:
    if (directory / "tls.crt").exists():
        _print_command("certs", "rotate", "--dir", str(directory))
        certs.rotate(directory=directory)
    else:
        _print_command("certs", "issue", "--dir", str(directory))
        certs.issue(directory=directory)


def _server_arguments(directory: Path, context: Path, port: int) -> list[str]:
    files = ["--tls-cert", str(directory / "tls.crt"), "--tls-key", str(directory / "tls.key")]
    return [
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        *files,
        "--context",
        str(context),
        "--context-is-whole",
    ]


def _replace_process_by_server(directory: Path, context: Path) -> int:
    """Replace this process by `claimgate serve`."""
    arguments = _server_arguments(directory, context, 8443)
    _print_command(*arguments)
    trust = f"--server https://localhost:8443 --ca {directory / 'ca.crt'}"
    sys.stdout.write(f"In another terminal: claimgate replay {context.parent / 'reviews'} {trust}\n")
    sys.stdout.flush()
    os.execv(sys.executable, [*_CLAIMGATE, *arguments])  # noqa: S606 - this program itself


@contextmanager
def _serve_until_done(directory: Path, context: Path) -> Iterator[str]:
    """Start a server on a free port, yield its address once it answers, and stop it at the end."""
    arguments = _server_arguments(directory, context, 0)
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
    """Read the log of the server until it is ready; return its port and the milliseconds that it took.

    Raises:
        ConfigurationError: the server ended, or did not get ready in time.
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


def _send_reviews(url: str, ca: Path, reviews: Path) -> None:
    _print_command("replay", str(reviews), "--server", url, "--ca", str(ca))
    inputs = documents.read_documents([reviews])
    row = table.load_table().row
    with closing(RemoteWebhook.connect(url, ca)) as door:
        _print_table(_table_of_rows([_row_of_review(review, door, row) for review in inputs.documents]))


def _row_of_review(review: documents.InputDocument, door: ReviewAnswerer, row: fixtures.RowOf) -> Sequence[str]:
    """Return the row of one review: file, verdict, code, message to the user, changes."""
    outcome = run_phases(fixtures.attributes_of_fixture(review.value, row), "auto", door)
    verdict, status = outcome.verdict, outcome.verdict.status
    denied = None if verdict.allowed else status
    said = [denied.message] if denied else []
    said += [f"warning: {text}" for text in verdict.warnings]
    return (
        one_line(Path(review.source).stem),
        one_line(f"denied {denied.reason}" if denied else "allowed"),
        str(denied.code) if denied else "200",
        "\n".join(map(one_line, said)),
        "\n".join(
            one_line(patch_operation_as_text({**change, "path": _end_of_pointer(change["path"])}))
            for change in verdict.patch
        ),
    )


def _end_of_pointer(pointer: str) -> str:
    """Return the end of a JSON Pointer; replay prints the whole."""
    steps = pointer.split("/")
    return pointer if len(steps) <= _STEPS + 1 else "/".join(("…", *steps[-_STEPS:]))


def _table_of_rows(rows: Sequence[Sequence[str]]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("review", "verdict", "code", "message, warnings", "patch"):
        made.add_column(heading, overflow="fold")
    for cells in rows:
        made.add_row(*(Text(cell) for cell in cells))
    return made


def _print_table(shown: Table) -> None:
    from rich.console import Console

    console = Console(soft_wrap=False)
    width = console.width if console.is_terminal else 140
    Console(width=width).print(shown)
