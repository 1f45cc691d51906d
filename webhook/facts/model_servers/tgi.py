"""TGI: a shard is a process with its own GPU; without a number it uses every GPU that it sees.

Each option of the launcher is also a variable. `--sharded true` without a number counts the visible devices, and
refuses a single device.

Source: huggingface/text-generation-inference@db931fcf launcher/src/main.rs find_num_shards and
server/text_generation_server/utils/dist.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.facts.model_servers.processes import ServerProcesses
from webhook.facts.model_servers.started_servers import StartedServer


def processes_of_tgi(server: StartedServer) -> ServerProcesses:
    """Return the number of shards that TGI starts: the number of GPUs if nothing sets it."""
    shards = _shards(server)
    is_single = (server.arguments.text("sharded") or server.variables.get("SHARDED", "")).lower() == "false"
    if shards is None:
        if is_single and not server.arguments.is_open:
            return ServerProcesses(here=1, total=1, noun="shard", plural="shards", lower="set --num-shard {}")
        return ServerProcesses()
    name = server.arguments.spellings.get("shards", "NUM_SHARD")
    return ServerProcesses(
        here=shards,
        total=shards,
        noun="shard",
        plural="shards",
        sizes=f"{name} {shards}",
        lower=f"set {name} " + "{}",
    )


def _shards(server: StartedServer) -> int | None:
    written = server.arguments.values.get("shards") or server.variables.get("NUM_SHARD") or ""
    return int(written) if written.isascii() and written.isdigit() and len(written) < 5 else None


def refusals_of_tgi(server: StartedServer, gpus: int | None) -> Iterator[tuple[str, str]]:
    """Yield a refused command: `--sharded true` without a number, on one GPU."""
    sharded = server.arguments.text("sharded") or server.variables.get("SHARDED", "")
    visible = server.variables.get("CUDA_VISIBLE_DEVICES", "")
    counted = len(visible.split(",")) if visible else gpus
    if sharded.lower() == "true" and _shards(server) is None and counted == 1 and not server.arguments.is_open:
        has = f"the one GPU of CUDA_VISIBLE_DEVICES={visible[:40]}" if visible else "1 GPU"
        message = f"TGI refuses --sharded true with {has} because sharding needs more than one"
        yield message, "remove CUDA_VISIBLE_DEVICES" if visible else "remove --sharded, or request more GPUs"
