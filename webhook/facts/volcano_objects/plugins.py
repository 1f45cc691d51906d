"""The known plugins of a Job: their options, and the tasks that they look for by name.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/job/plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from webhook.facts.volcano_objects.go_flags import Kind, ParsedFlags, read_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoPlugin:
    """One plugin: its options, and the roles of the tasks that it looks for with their default names."""

    options: Mapping[str, Kind] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)

    def parse_arguments(self, arguments: Iterable[str]) -> ParsedFlags:
        """Return its parsed arguments; a plugin without options ignores them."""
        options: dict[str, Kind] = {**self.options, **dict.fromkeys(self.tasks, "text")}
        return read_flags(arguments, options) if options else ParsedFlags()


PLUGINS: Final[Mapping[str, VolcanoPlugin]] = {
    "env": VolcanoPlugin(),
    "hcclrank": VolcanoPlugin(tasks={"master": "master", "worker": "worker"}),
    "mpi": VolcanoPlugin(options={"port": "number"}, tasks={"master": "master", "worker": "worker"}),
    "pytorch": VolcanoPlugin(
        options={
            "port": "number",
            "wait-master-enabled": "truth",
            "wait-master-timeout": "number",
            "wait-master-image": "text",
        },
        tasks={"master": "master", "worker": "worker"},
    ),
    "ray": VolcanoPlugin(
        options={
            "headContainer": "text",
            "workerContainer": "text",
            "port": "number",
            "dashboardPort": "number",
            "clientPort": "number",
        },
        tasks={"head": "head", "worker": "worker"},
    ),
    "ssh": VolcanoPlugin(
        options={"ssh-key-file-path": "text", "ssh-private-key": "text", "ssh-public-key": "text", "ssh-port": "number"}
    ),
    "svc": VolcanoPlugin(
        options={"publish-not-ready-addresses": "truth", "disable-network-policy": "truth", "inject-hosts-env": "truth"}
    ),
    "tensorflow": VolcanoPlugin(
        options={"port": "number"}, tasks={"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator"}
    ),
}
