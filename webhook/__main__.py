"""Starts the `claimgate` command, also as `python -m webhook`."""

from __future__ import annotations

import gc
import io
import os
import sys

from webhook.cli import run_command_line, run_with_traceback


def main() -> None:
    """Run the command line and exit with its code."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # otherwise every installed package is read
    gc.set_threshold(200_000)  # collecting modules and policies, which stay, takes a tenth of a start
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for a terminal without UTF-8
    code = run_with_traceback(lambda: run_command_line(sys.argv[1:]))
    gc.freeze()  # the interpreter's last collection takes a tenth of a short run and frees nothing
    sys.exit(code)


if __name__ == "__main__":
    main()
