"""The checks of one model server, with a whole container or a part that a controller merges."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.facts.model_servers import (
    ends_and_models,
    processes,
    refused_arguments,
    shared_memory,
    visible_devices,
)
from webhook.facts.model_servers.processes import ServerAtPath
from webhook.facts.model_servers.servers_of_object import ServerContainer
from webhook.rules.problem import Problem


def check_server(member: ServerContainer) -> Iterator[Problem]:
    """Yield the problems of one server, in an object of any kind."""
    at = ServerAtPath(
        server=member.server.name,
        path=member.path,
        processes=member.processes,
        gpus=member.gpus,
        flags=member.size_flags,
    )
    yield from processes.check_processes_against_gpus(at)
    yield from processes.check_slices_and_absent_gpus(at)
    yield from refused_arguments.check_refused_arguments(member)
    yield from refused_arguments.advise_naming_ray(member)
    yield from visible_devices.check_visible_devices(member)
    yield from shared_memory.advise_shared_memory(member)
    yield from ends_and_models.check_shutdown(member)
    yield from ends_and_models.advise_model_source(member)
