"""`claimgate policies new`: a folder with a policy, its binding, its parameter and a suite, all of which work."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from webhook import names, terminal
from webhook.commands.new_policy_text import NewPolicyOptions, files_of_new_policy
from webhook.errors import ConfigurationError


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Of the policy and its folder.")],
    *,
    expand: Annotated[bool, typer.Option("--expand", help="Ask it about pod templates of workloads, too.")] = False,
    mutate: Annotated[bool, typer.Option("--mutate", help="One that changes objects.")] = False,
    param: Annotated[bool, typer.Option("--param", help="One that reads a ConfigMap.")] = False,
    parent: Annotated[Path, typer.Option("--in", metavar="DIR", help="Where the folder goes.")] = Path(),
) -> int:
    """Write a folder with a new policy, its binding and a suite that passes.

    The policy demands the label `team` of Pods; with --mutate it sets it. Change it, and the cases with it.
    """
    wrong = names.dns1123_subdomain_errors(name)
    if wrong:
        raise ConfigurationError(f"`{name}` cannot be the name of a policy: {wrong[0]}")
    folder = parent / name
    if folder.exists():
        raise ConfigurationError(f"{folder}: exists, and is left as it is: choose another name, or remove it")
    written = files_of_new_policy(NewPolicyOptions(name=name, expands=expand, mutates=mutate, has_param=param))
    _write_all_files(folder, written)
    lines = [*(f"wrote {folder / each}" for each in written), f"next: claimgate policies check {folder}"]
    sys.stdout.write(terminal.lines([*lines, f"      claimgate test {folder}"]))
    return 0


def _write_all_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write all files, or none: the folder appears when they are complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".claimgate-", dir=folder.parent))
    try:
        for name, text in texts.items():
            (unfinished / name).write_text(text, encoding="utf-8")
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
