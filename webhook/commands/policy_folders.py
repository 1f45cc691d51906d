"""The folders of policies that the verbs of `claimgate policies` take, and the settings that say how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from webhook.settings.shared import Settings

SETTINGS: Final = ("config", "workloads", "cel_engine", "kubernetes_version")
Folders: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(metavar="DIR", show_default=False, help="Folders and files. Default: the shipped policies."),
]


def settings_with_named_policies(named: Sequence[Path] | None, settings: Settings) -> Settings:
    """Return the settings, with the named policies in place of the shipped ones."""
    return replace(settings, only=tuple(named)) if named else settings
