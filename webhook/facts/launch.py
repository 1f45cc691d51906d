"""What a container's command says of processes: torchrun's and mpirun's own options, found among its words.

Reads words only; a shell script is taken apart at spaces, never run. Where several launchers stand in one command, or a
number is still to be filled in, nothing is said. Options: pytorch torch/distributed/run.py; Open MPI mpirun(1).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.attributes import JSON
from webhook.facts.containers import items

_TORCH = re.compile(r"(.*/)?torchrun|torch\.distributed\.(run|launch)")
_MPI = re.compile(r"(.*/)?(mpirun|mpiexec|horovodrun)")
_SPLIT = re.compile(r"[\s;\"'\\&|]+")
_PER_NODE = ("--nproc_per_node", "--nproc-per-node")
_NODES = ("--nnodes",)
_RANKS = ("-np", "--np", "-n")
_MORE = ("--oversubscribe", "-oversubscribe")


def launch(container: JSON) -> JSON:
    """`{by, processes, nodes, ranks, oversubscribed}` of a container.

    by: torchrun, mpirun or "". processes: --nproc_per_node, ranks: -np; a number or null. nodes: --nnodes as written.
    """
    words = _words(container)
    torch = [index for index, word in enumerate(words) if _TORCH.fullmatch(word)]
    mpi = [index for index, word in enumerate(words) if _MPI.fullmatch(word)]
    alone = len(torch) + len(mpi) == 1
    after = words[(torch or mpi)[0] + 1 :] if alone else []
    oversubscribed = any(word in _MORE or word.endswith(":OVERSUBSCRIBE") for word in words)
    return {
        "by": "torchrun" if torch else "mpirun" if mpi else "",
        "processes": _number(_option(after, _PER_NODE)) if torch else None,
        "nodes": _option(after, _NODES) if torch else "",
        "ranks": _number(_option(after, _RANKS)) if mpi else None,
        "oversubscribed": oversubscribed,
    }


def _words(container: JSON) -> list[str]:
    texts = [each for side in ("command", "args") for each in items(container.get(side)) if isinstance(each, str)]
    return [word for text in texts for word in _SPLIT.split(text) if word]


def _option(words: Sequence[str], names: Sequence[str]) -> str:
    """The value of the first of these options, "" without one."""
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else words[index + 1] if index + 1 < len(words) else ""
    return ""


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None
