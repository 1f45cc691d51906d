"""Builds the documentation as a site: `python -m tests.documentation_site`, or `make site`.

The pages of docs/ link to other pages of the repository, which are added under `repository/`. A link to a file that is
not a page becomes the name of the file. So the strict build finds every broken link.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS, PAGES = ROOT / "docs", ROOT / "build" / "pages"
BAR_IN_CODE = re.compile(r"`[^`]*\\\|[^`]*`")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def main() -> int:
    stage()
    command = [
        shutil.which("zensical", path=str(Path(sys.executable).parent)) or "zensical",
        "build",
        "--strict",
        "--clean",
    ]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def stage() -> None:
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(DOCS, PAGES)
    pending, staged = sorted(DOCS.rglob("*.md")), set()
    while pending:
        page = pending.pop()
        if page not in staged:
            staged.add(page)
            place = _place(page)
            place.parent.mkdir(parents=True, exist_ok=True)
            pending += _written(page, place)


def _place(page: Path) -> Path:
    if page.is_relative_to(DOCS):
        return PAGES / page.relative_to(DOCS)
    return PAGES / "repository" / page.relative_to(ROOT)


def _written(page: Path, place: Path) -> list[Path]:
    """Return the pages outside of docs/ that the page links to."""
    others: list[Path] = []

    def linked(match: re.Match[str]) -> str:
        text, target, anchor = match[1], (page.parent / match[2]).resolve(), match[3] or ""
        if target.is_dir() and (target / "README.md").is_file():
            target /= "README.md"
        if target.suffix != ".md" or not target.is_file():
            return text
        others.append(target)
        text = _title(target) if text.endswith(".md") else text
        return f"[{text}]({os.path.relpath(_place(target), place.parent)}{anchor})"

    place.write_text(LINK.sub(linked, _without_escaped_bars(page.read_text())))
    return others


def _without_escaped_bars(text: str) -> str:
    """Write `|` as it is in code of tables: GitHub needs `\\|` there, and the site would show the backslash."""
    lines = (
        BAR_IN_CODE.sub(lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line
        for line in text.split("\n")
    )
    return "\n".join(lines)


def _title(page: Path) -> str:
    return page.read_text().split("\n", 1)[0].lstrip("# ")


if __name__ == "__main__":
    sys.exit(main())
