"""The code blocks of the pages: read, run in order in one shell of each page, and rewritten.

A page has its own copy of the checkout, so a block may write files. The language of a block says what happens:

- `console`: the commands after `$ ` are run, and their output is compared with the text below. `…` matches any text, and
  a line `…` any number of lines.
- `bash`: the block is run. A failure fails the test, except findings of claimgate (exit code 1).
- `python`, `yaml`: written to the file that the comment before the block names, for later blocks.
- `text`, `cel`: shown, never run.

A comment before a block exempts it: `<!-- not run: REASON -->`, `<!-- cluster: WHAT IS READ OR CHANGED -->`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/servers/*.md",
        "docs/decisions/*.md",
        "deploy/**/*.md",
        "examples/*/*.md",
        "policies/*.md",
    )
    for path in ROOT.glob(pattern)
)
COPIED = ("deploy", "examples", "policies")
COLUMNS = "100"
"""The width of the terminal in pages"""
MARK = "\036"
"""Separates the output of two commands: the record separator, which no command prints"""
BLOCK = re.compile(
    r"(?:^[ ]*<!-- (?P<marker>[a-z ]+): (?P<reason>[^\n]*) -->\n\n?)?^(?P<indent>[ ]*)```(?P<language>\w*)\n(?P<text>.*?)^[ ]*```$",
    re.DOTALL | re.MULTILINE,
)


class Block(msgspec.Struct, frozen=True):
    """A fenced block of a page. `marker` is the comment before it, or ""."""

    language: str
    text: str
    marker: str
    reason: str

    @property
    def is_run(self) -> bool:
        return self.language in ("console", "bash") and self.marker not in ("cluster", "not run")

    @property
    def commands(self) -> list[str]:
        """Return the commands with their continuation lines. A block that is not a console block is one command."""
        return [command for command, _ in self.steps]

    @property
    def steps(self) -> list[tuple[str, str]]:
        if self.language != "console":
            return [(self.text, "")]
        steps: list[tuple[str, str]] = []
        for line in self.text.splitlines(keepends=True):
            if line.startswith("$ "):
                steps.append((line[2:], ""))
            elif steps and steps[-1][0].endswith("\\\n") and not steps[-1][1]:
                steps[-1] = (steps[-1][0] + line, "")
            elif steps:
                steps[-1] = (steps[-1][0], steps[-1][1] + line)
        return steps


def blocks_of(text: str) -> Iterator[Block]:
    """Yield the blocks of a page. If a block is in a list, its indentation is removed."""
    return (_block(match) for match in BLOCK.finditer(text))


def _block(match: re.Match[str]) -> Block:
    return Block(match["language"], textwrap.dedent(match["text"]), match["marker"] or "", match["reason"] or "")


def outputs_of(blocks: list[Block], checkout: Path) -> Iterator[tuple[Block, list[str]]]:
    """Run the blocks of a page in one shell. Yield each block that is run, with the outputs of its commands.

    `checkout` is an empty folder, which becomes the copy that the shell works in.
    """
    for name in COPIED:
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    run = [block for block in blocks if block.is_run]
    done = subprocess.run(
        ["bash", "-c", "".join(_script(blocks))],
        cwd=checkout,
        env=_environment(checkout),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    printed = iter(done.stdout.split(MARK)[1:])
    for block in run:
        yield block, [next(printed, "the shell ended before this command\n") for _ in block.commands]


_REPORT_FAILURE = (
    'code=$?; case "$code $BASH_COMMAND" in "1 claimgate "*) ;; *) echo "exit code $code: $BASH_COMMAND" ;; esac'
)
"""claimgate exits with 1 for findings, which is not a failure of the page."""


def _script(blocks: list[Block]) -> Iterator[str]:
    for block in blocks:
        if block.marker == "file":
            yield f"mkdir -p \"$(dirname '{block.reason}')\" && cat > '{block.reason}' <<'END OF BLOCK'\n{block.text}END OF BLOCK\n"
        elif block.is_run:
            trap = f"trap '{_REPORT_FAILURE}' ERR\n"
            yield trap if block.language == "bash" else "trap - ERR\n"
            for command in block.commands:
                yield f"printf '{MARK}'\n{command}"


def _environment(checkout: Path) -> dict[str, str]:
    """Return the environment of a new user: an empty home, and claimgate on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAIMGATE_", "KUBE", "GIT_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "HOME": str(checkout.parent), "COLUMNS": COLUMNS}


def shows(shown: str, printed: str) -> bool:
    """Return whether the page shows what was printed. `…` in the page matches any text."""
    lines = (
        r"(?:[^\n]*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.rstrip("\n").split("…"))) + r"\n"
        for line in shown.splitlines(keepends=True)
    )
    return re.fullmatch("".join(lines), printed) is not None


def written_anew(text: str, checkout: Path) -> str:
    """Return the page with the output of its commands. Output that still matches stays, with its `…`."""
    ran = outputs_of([*blocks_of(text)], checkout)

    def anew(match: re.Match[str]) -> str:
        block = _block(match)
        if not block.is_run or block.language != "console":
            if block.is_run:
                next(ran)
            return match[0]
        _, outputs = next(ran)
        steps = zip(block.steps, outputs, strict=True)
        new = "".join(
            f"$ {command}{shown if shows(shown, printed) else printed}" for (command, shown), printed in steps
        )
        before, after = match[0].split("```console\n", 1)[0], match[0].rsplit("\n", 1)[1]
        return f"{before}```console\n{textwrap.indent(new, match['indent'])}{after}"

    return BLOCK.sub(anew, text)
