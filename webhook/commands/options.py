"""Flags that several verbs share, so that a flag means the same everywhere; config.py has their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from webhook.config import EngineName
from webhook.report import formats

Policies: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--policies", metavar="DIR", help="Policies: a folder or file; repeatable. Default: the shipped ones."
    ),
]
Context: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--context", metavar="DIR", help="Objects that the cluster holds: a folder or file; repeatable."),
]
Workloads: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--workloads", metavar="FILE", help="Further kinds that hold pods: rows of the workload table; repeatable."
    ),
]
Engine: TypeAlias = Annotated[
    EngineName | None,
    typer.Option("--cel-engine", help="The CEL compiler (default), or cel-python as a second opinion."),
]
Version: TypeAlias = Annotated[
    str | None,
    typer.Option("--kubernetes-version", metavar="1.N", help="Whose CEL library policies may use. Default: 1.36."),
]
ReportOutputs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--output", "-o", metavar="FORMAT[=FILE]", help=f"{', '.join(formats.names())}; repeatable."),
]
