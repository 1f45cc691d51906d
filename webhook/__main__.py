"""`python -m webhook` and the `claimgate` command: arguments in, exit code out."""

from __future__ import annotations

import sys

from webhook.cli import guarded, run


def main() -> None:
    """Run the command line of this process and exit with its code."""
    sys.exit(guarded(lambda: run(sys.argv[1:])))


if __name__ == "__main__":
    main()
