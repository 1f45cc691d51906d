"""`claimgate policies init`: writes policies that most sites need, each with a binding and a suite that passes.

The policies are the folders of init_policies/. Each policy.yaml begins with a description of the policy and of the
lines to edit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from webhook.commands.new_policy import write_new_folder
from webhook.errors import ConfigurationError
from webhook.text import terminal
from webhook.text.similar_names import nearest_name
from webhook.yamltext import yamlfile

FOLDER: Final = Path(__file__).with_name("init_policies")
_FILES: Final = ("policy.yaml", "binding.yaml", "suite.yaml")


def names_of_policies() -> tuple[str, ...]:
    """Return the names of the policies that can be written."""
    return tuple(sorted(each.name for each in FOLDER.iterdir() if each.is_dir()))


def description_of_policy(name: str) -> str:
    """Return the description of a policy in one sentence."""
    (document,) = yamlfile.read(FOLDER / name / "policy.yaml")
    return str(document.value["metadata"]["annotations"]["kubernetes.io/description"])


def command(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="The name of a policy; --list prints all names.",
            autocompletion=names_of_policies,
        ),
    ] = None,
    *,
    is_list: Annotated[bool, typer.Option("--list", help="List the policies with their purpose.")] = False,
    parent: Annotated[Path, typer.Option("--in", metavar="DIR", help="Create the folders in this directory.")] = Path(
        "policies"
    ),
) -> int:
    """Write policies that most sites want, each into a folder with its binding and a suite that passes.

    The comment at the top of each policy.yaml says what the policy does and what to edit. Edit its suite as well.
    """
    known = names_of_policies()
    if is_list and name:
        raise ConfigurationError("--list lists all policies: use it without names")
    if is_list:
        width = max(map(len, known))
        sys.stdout.write(terminal.lines(f"{each:{width}}  {description_of_policy(each)}" for each in known))
        return 0
    if not name:
        raise ConfigurationError(f"expected the name of a policy: {', '.join(known)}")
    for each in name:
        if each not in known:
            near = nearest_name(each, known)
            hint = f", did you mean `{near}`?" if near else f": expected one of {', '.join(known)}"
            raise ConfigurationError(f"policy `{each}` does not exist{hint}")
    chosen = tuple(dict.fromkeys(name))
    for each in chosen:
        if os.path.lexists(parent / each):
            raise ConfigurationError(
                f"{parent / each}: exists already, and was not changed: remove it, or choose another --in"
            )
    for each in chosen:
        write_new_folder(parent / each, _files_of_policy(each))
    lines = [f"wrote {parent / each}: {description_of_policy(each)}" for each in chosen]
    lines += [f"next: edit policy.yaml of each folder, as its comment says; then run claimgate policies check {parent}"]
    sys.stdout.write(terminal.lines([*lines, f"      claimgate test {parent}"]))
    return 0


def _files_of_policy(name: str) -> Mapping[str, str]:
    return {file: (FOLDER / name / file).read_text(encoding="utf-8") for file in _FILES}
