"""A picture of a terminal: commands and their output as SVG, without external fonts or scripts."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

_LETTER, _LINE, _MARGIN, _BAR = 7.9, 19, 16, 34
_STYLE: Final = (
    "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}"
    ".command{fill:#7ee787}.fail{fill:#ff7b72}.warn{fill:#e3b341}"
)
_SIGNS: Final = {"  ✖ fail": "fail", "✖ denied": "fail", "  ⚠ warn": "warn", "    fix:": "command"}


def picture(text: str, title: str) -> str:
    """Return a picture of a console block with commands that begin with `$`. `title` is for screen readers.

    The lines must be short enough.
    """
    lines = text.rstrip("\n").split("\n")
    width = round(max(map(len, lines)) * _LETTER) + 2 * _MARGIN
    height = len(lines) * _LINE + _BAR + _MARGIN
    dots = "".join(f'<circle cx="{20 + 18 * n}" cy="17" r="5.5" fill="#484f58"/>' for n in range(3))
    drawn = "\n".join(_line(number, line) for number, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>{dots}\n{drawn}\n</svg>\n'
    )


def _line(number: int, line: str) -> str:
    inner = "".join(_spans(line)) if not line.startswith("$ ") else f'<tspan class="command">{escape(line)}</tspan>'
    return f'<text x="{_MARGIN}" y="{_BAR + 14 + number * _LINE}" xml:space="preserve">{inner}</text>'


def _spans(line: str) -> Iterator[str]:
    for sign, name in _SIGNS.items():
        if line.startswith(sign):
            yield f'<tspan class="{name}">{escape(sign)}</tspan>{escape(line.removeprefix(sign))}'
            return
    yield escape(line)
