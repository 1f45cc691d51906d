"""`claimgate ui`: starts a playground for policies in the browser of this machine."""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec.structs import replace

from webhook import assembly
from webhook.cel import compiled_engine
from webhook.commands import options
from webhook.errors import ConfigurationError
from webhook.playground.measured_engine import MeasuredEngine
from webhook.policy.load import Options
from webhook.policy.policy_set import PolicySet
from webhook.settings.shared import Settings
from webhook.yamltext.yamlfile import dump

if TYPE_CHECKING:
    from webhook.playground.exchange import Question

HOST: Final = "127.0.0.1"


@options.add_settings_flags(Settings, "config", "policies", "only", "workloads", "kubernetes_version")
def command(
    *,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port on 127.0.0.1; 0 means any free port.")
    ] = 8642,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    settings: Settings,
) -> int:
    """Try policies and objects in the browser, until Ctrl-C.

    Only this machine can open the page, and the page loads nothing from other hosts. Each evaluation runs in a separate
    process, which stops after ten seconds. The page is not an admission webhook.
    """
    if not hasattr(os, "fork"):
        raise ConfigurationError("ui: this system cannot fork, so no evaluation would be bounded: use Linux or macOS")
    import uvicorn

    from webhook.playground.application import Playground, create_application
    from webhook.playground.worker import Workers

    engine = MeasuredEngine(compiled_engine())
    compile_options = replace(
        assembly.create_compile_options(settings), engine=engine, lazy=not (settings.policies or settings.only)
    )
    policies = assembly.load_policies_of_settings(settings, compile_options)
    listening = _listening_socket(port)
    bound = listening.getsockname()[1]
    address = f"http://{HOST}:{bound}"
    hosts = frozenset((f"{HOST}:{bound}", f"localhost:{bound}"))
    playground = Playground(
        policies=policies,
        options=compile_options,
        engine=engine,
        workers=Workers(),
        check=mistakes_of_policies,
        draft=files_of_drafted_suite,
    )
    sys.stdout.write(f"the playground is at {address} (Ctrl-C ends it)\n")
    sys.stdout.flush()
    if open_browser:
        webbrowser.open(address)
    config = uvicorn.Config(
        create_application(playground, hosts), log_level="warning", server_header=False, access_log=False
    )
    uvicorn.Server(config).run(sockets=[listening])
    return 0


def mistakes_of_policies(loaded: PolicySet, options: Options) -> list[dict[str, Any]]:
    """Return the report of `claimgate policies check`: `policy` and `mistakes` of each policy with mistakes."""
    from webhook.commands.policy_details import full_details, lines_about_mistakes

    described = (full_details(policy, loaded, {}, options) for policy in loaded.policies)
    policies_with_mistakes = (
        {"policy": each["name"], "mistakes": list(lines_about_mistakes(each))} for each in described
    )
    return [each for each in policies_with_mistakes if each["mistakes"]]


def files_of_drafted_suite(question: Question, options: Options) -> dict[str, str]:
    """Return the texts of `policy.yaml` and `suite.yaml`. In a folder with both files, `claimgate test` passes.

    Raises:
        InputError: a text cannot be read, or there is no object or no policy.
    """
    from webhook.playground.evaluation import input_of_case
    from webhook.suites.drafted_cases import text_of_new_suite

    values, policies, others = input_of_case(question)
    written = "---\n".join(map(dump, policies))
    with TemporaryDirectory() as folder:
        path = Path(folder, "policy.yaml")
        path.write_text(written, encoding="utf-8")
        situation = {"phase": question.phase, "context": others, "contextIsWhole": question.is_whole}
        suite, _ = text_of_new_suite(Path(folder), values, situation, replace(options, lazy=False))
    return {"policy.yaml": written, "suite.yaml": suite}


def _listening_socket(port: int) -> socket.socket:
    """Return a listening socket on loopback.

    Raises:
        ConfigurationError: the port is in use.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()  # now, because a user may open the address as soon as it is printed
    except OSError as error:
        listening.close()
        reason = (error.strerror or "unknown cause").lower()
        raise ConfigurationError(f"cannot listen on {HOST}:{port}: {reason}; choose another port with --port") from None
    return listening
