"""`claimgate completion`: prints the script with which a shell completes verbs, options and rules."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import completion

from webhook.text.terminal import Shell


def command(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh, fish, powershell or pwsh.")],
) -> int:
    """Print the completion script of a shell.

    For bash, put `source <(claimgate completion bash)` into ~/.bashrc. For zsh, write the script to a file `_claimgate`
    in a folder of $fpath.
    """
    completion.show_callback(context, context.command.params[0], shell)
    return 0
