"""Triton: mpirun, or the script that calls it, starts a rank of the server for each GPU that its engine was built for.

Source: triton-inference-server/tensorrtllm_backend scripts/launch_triton_server.py.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.facts.command_lines.command import cached_launch_of_container
from webhook.facts.model_servers.arguments import Arguments
from webhook.facts.model_servers.processes import ServerProcesses
from webhook.facts.model_servers.started_servers import StartedServer
from webhook.facts.subject import Subject
from webhook.typed.pods import Container

TRITON: Final = "Triton"
_SERVER: Final = re.compile(r"\btritonserver\b")


def triton_of_container(container: Container, subject: Subject) -> StartedServer | None:
    """Return the server of Triton that mpirun starts in a container; None if it starts none."""
    launch = cached_launch_of_container(container, subject)
    if launch.by != "mpirun" or launch.ranks is None or not container.runs(_SERVER):
        return None
    return StartedServer(name=TRITON, arguments=Arguments(values={"ranks": str(launch.ranks)}))


def processes_of_triton(server: StartedServer) -> ServerProcesses:
    """Return the ranks that mpirun starts."""
    ranks = server.arguments.number("ranks", 0)
    return ServerProcesses(
        here=ranks or None,
        total=ranks or None,
        noun="rank",
        plural="ranks",
        sizes=f"{server.arguments.spelling('ranks', 'mpirun -n')} {ranks}",
        lower=f"set {server.arguments.spelling('ranks', '-n')} " + "{}",
        outcome="fails, or runs two ranks on one GPU",
        is_advice=True,
    )
