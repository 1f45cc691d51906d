"""Random YAML texts in the styles that manifests are written in, and texts that are nearly in these styles."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

KEYS = [
    "a b name spec metadata kind nvidia.com/gpu kubernetes.io/arch yes no on y null ~ true 1 017 1.5 1e3 0x1F << = \"q\" 'q'",
    '"a b" \'it\' "a\\"b" "" \'\' -a .a $a a.b-c_d key-1 "yes" \'1\' "a: b" \'#\' 2024-01-01 é',
]
KEYS = [key for line in KEYS for key in line.split(" ")] + ['"a b"', "'a b'", '"a: b"', "a b", "? a", "!!str a", "&x a"]
SCALARS = [
    *[
        "a",
        "yes",
        "No",
        "off",
        "y",
        "null",
        "~",
        "Null",
        "0",
        "1",
        "-1",
        "+1",
        "017",
        "08",
        "0o17",
        "0x1F",
        "0b11",
        "1_000",
        "_1",
        "1.",
        ".5",
        "1.0",
        "1e3",
        "1e400",
        "-0.0",
        "12:30",
        "2024-01-01",
        ".inf",
        ".nan",
    ],
    *[
        "9223372036854775807",
        "9223372036854775808",
        "10Gi",
        "1.2.3",
        "nvidia/cuda:12.1",
        "http://a:8/b?c=d#e",
        "a#b",
        "a:b",
        "-",
        "--",
        "---",
        "-a",
        "--flag=1",
        "...",
        "|",
        ">",
        "%",
        "@",
        "`",
        "&",
        "*",
        "!",
        "?",
        ":",
    ],
    *[
        "--a b",
        "a  b",
        "a #b",
        "a: b",
        "a:",
        "=",
        "<<",
        "<a>",
        "$(A) b",
        "(a)",
        "~a",
        "^a",
        "\\a",
        ";a",
        "{{a}}",
        "{a}",
        "a {b}",
        "[a",
        "a]",
        "é ü",
    ],
    *[
        '"a"',
        '"a\\n\\"b\\""',
        '"\\x41"',
        '"\\u00e9"',
        '"a # b"',
        '"a: b"',
        '""',
        '"a',
        'a"b',
        "'a'",
        "'it''s'",
        "''",
        "'a",
        "'a' b",
        '"a" b',
        '"\\\\"',
    ],
    *[
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[a]",
        "[a, b]",
        "[1,2]",
        '["a","b"]',
        "['a', -1, --x]",
        "[a: b]",
        "[[a]]",
        "{a: b}",
        "{a}",
        "[a b]",
        "[-]",
        "[a,]",
        "[,]",
        "[*x]",
        "[a]b",
        "[] #c",
    ],
    *[
        "&x a",
        "*x",
        "!!str 1",
        "!!int a",
        "!a b",
        "&x",
        "!!binary aGk=",
        "a\tb",
        "\ta",
        "a\u2028b",
        "a\x85b",
        "\ufeffa",
        "a\x07",
        "😀",
    ],
]
USUAL = [
    "a",
    "nvidia/cuda:12.1",
    "1",
    "10Gi",
    "yes",
    "true",
    '"a"',
    "'a'",
    "--flag=1",
    "$(A) b",
    "[a, b]",
    '["a"]',
    "{}",
    "[]",
]
IN_BRACKETS = [
    "a",
    "a:1",
    "x/y:1.2",
    "http://a:8/b",
    "12:30",
    "1",
    "no",
    "1.0",
    "-1",
    "--x",
    "a.b/c",
    '"a, b"',
    "'c'",
    '"*"',
    "[]",
    "{}",
]
SEPARATORS = [", ", ", ", ", ", ",", ",  ", " , ", " ", ": ", ",,"]
LITERALS = ["|", "|-", "|+", ">", ">-", "|2", "| #c", "|a"]
COMMENTS = ["", "", "", "", " # c", "  #c", "#c", " ", "\t"]
MARKS = ["---", "--- ", "--- # c", "--- a", "--- |", "---a", "...", "%YAML 1.1", "# c", ""]
PIECES = [
    " ",
    "  ",
    "\n",
    "- ",
    "-",
    ":",
    ": ",
    "#",
    " #",
    "'",
    '"',
    "|",
    "\t",
    "a",
    "1",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&",
    "*",
    "!",
    "%",
    "?",
    "\r",
    "---\n",
    "\n---\n",
    "...\n",
    "\\",
]


def text(random: Random) -> str:
    """Return a random text of one to three documents. Many of them are nearly ordinary."""
    writer = _Writer(random, random.choice((0.01, 0.03, 0.1, 0.4)))
    written = "".join(writer.document() for _ in range(random.choice((1, 1, 1, 2, 3))))
    return mutated(random, written, random.choice((0, 0, 0, 1, 1, 2)))


def mutated(random: Random, written: str, times: int) -> str:
    for _ in range(times):
        written = random.choice((_piece, _cut, _moved, _indented, _repeated))(random, written)
    return written


class _Writer:
    """Writes random YAML. `oddity` is how often a key, a scalar or an indentation is unusual for manifests."""

    def __init__(self, random: Random, oddity: float) -> None:
        self._random, self._oddity = random, oddity

    def document(self) -> str:
        mark = f"{self._one(MARKS[:2], MARKS)}\n" if self._random.random() < 0.4 else ""
        end = "" if self._is_odd() else "\n"
        return mark + "\n".join(self._value(0, self._random.randrange(1, 5))) + end

    def _is_odd(self) -> bool:
        return self._random.random() < self._oddity

    def _one(self, usual: Sequence[Any], odd: Sequence[Any]) -> Any:
        return self._random.choice(odd if self._is_odd() else usual)

    def _value(self, indent: int, depth: int) -> Iterator[str]:
        is_list = self._random.random() < 0.45
        for number in range(self._random.randrange(1, 4)):
            key = "-" if is_list else f"{self._one([f'a{number}', f'nvidia.com/b{number}'], KEYS)}:"
            if self._is_odd():
                yield self._random.choice(("", " ", "# c", f"{' ' * indent}# c", f"{' ' * (indent + 3)}# c"))
            yield from self._entry(f"{' ' * indent}{key}", indent, depth, is_item=is_list)

    def _entry(self, begun: str, indent: int, depth: int, *, is_item: bool) -> Iterator[str]:
        kind = self._random.random()
        comment = self._one(COMMENTS[:5], COMMENTS)
        if depth and kind < 0.45:
            yield from self._nested(begun, indent, depth, comment, is_item=is_item)
        elif kind < 0.52:
            mark = self._one(["|", "|-", ">-", ">"], LITERALS)
            yield f"{begun} {mark}"
            yield from self._literal(indent + self._one([2, 4], [0, 1]), is_folded=mark[0] == ">")
        elif kind < 0.62:
            yield f"{begun} {self._in_brackets(self._random.randrange(1, 4))}{comment}"
        elif kind < 0.66:
            yield f"{begun}{comment}"
        else:
            yield f"{begun} {self._one(USUAL, SCALARS)}{comment}"

    def _nested(self, begun: str, indent: int, depth: int, comment: str, *, is_item: bool) -> Iterator[str]:
        if is_item and self._random.random() < 0.8:
            spaces = self._one([1], [2, 3])
            first, *others = self._value(indent + 1 + spaces, depth - 1)
            yield f"{begun}{' ' * spaces}{first.lstrip(' ')}"
            yield from others
        else:
            yield f"{begun}{comment}"
            yield from self._value(indent + self._one([2] if is_item else [2, 0], [1, 3, 4]), depth - 1)

    def _in_brackets(self, depth: int) -> str:
        if not depth or self._random.random() < 0.4:
            return self._one(IN_BRACKETS, [*IN_BRACKETS, *SCALARS])
        is_list, inner = self._random.random() < 0.4, ""
        for number in range(self._random.randrange(4)):
            separator = self._one([", "], SEPARATORS) if number else ""
            colon = self._one([": "], [":", " : ", ":  ", ""])
            key = (
                ""
                if is_list
                else f"{self._one([f'a{number}', f'x.io/b{number}', f'{chr(34)}c{number}{chr(34)}'], KEYS)}{colon}"
            )
            inner += f"{separator}{key}{self._in_brackets(depth - 1)}"
        space = self._one([""], [" ", "  ", ","])
        return f"[{space}{inner}{space}]" if is_list != self._is_odd() else f"{{{space}{inner}{space}}}"

    def _literal(self, width: int, *, is_folded: bool = False) -> Iterator[str]:
        space = " " * width
        for _ in range(self._random.randrange(1, 4)):
            usual = (
                [f"{space}text", f"{space}a: b", f"{space}# c"]
                if is_folded
                else [f"{space}text  ", f"{space}# c", f"{space}  - x", f"{space}a: b"]
            )
            yield self._one(usual, ["", " ", f"{space} ", f"{space}\ta", " a", "a"])


def _piece(random: Random, written: str) -> str:
    at = random.randrange(len(written) + 1)
    return written[:at] + random.choice(PIECES) + written[at:]


def _cut(random: Random, written: str) -> str:
    at = random.randrange(len(written) + 1)
    return written[:at] + written[at + random.choice((1, 1, 2, 5)) :]


def _moved(random: Random, written: str) -> str:
    lines = written.split("\n")
    lines.insert(random.randrange(len(lines)), lines.pop(random.randrange(len(lines))))
    return "\n".join(lines)


def _indented(random: Random, written: str) -> str:
    lines = written.split("\n")
    at = random.randrange(len(lines))
    lines[at] = f" {lines[at]}" if random.random() < 0.5 else lines[at][1:]
    return "\n".join(lines)


def _repeated(random: Random, written: str) -> str:
    lines = written.split("\n")
    lines.insert(random.randrange(len(lines)), random.choice(lines))
    return "\n".join(lines)
