"""Random YAML, read by both readers with equal answers: `python -m tests.fuzz.yaml_readers 100000 SEED`."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz import yaml_texts
from webhook import yamltext
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.yamltext import block_style
from webhook.yamltext.block_style import UnsupportedStyleError
from webhook.yamltext.reading import parse_documents


def told(text: str, read: Any) -> tuple[Any, ...]:
    """Return what a reader makes of a text: the values, the places of all their paths, and the mistakes."""
    places, repeated = yamltext.Places(text), list[yamltext.YamlError]()
    values: list[Any] = []
    error = None
    try:
        values = [(at, value) for at, value in read(places, repeated) if value is not None]
    except yamltext.YamlError as wrong:
        error = _error(wrong)
        if "appears twice" not in str(wrong) and _is_several(text):
            # a file of several documents is read in pieces, so the order of its mistakes does not matter
            return ("wrong",)
    held = [(_exact(value), [places.position(at, path) for path in _paths(value)]) for at, value in values]
    return ([] if error else held), error, sorted(map(_error, repeated))


def compare(text: str) -> bool:
    """Return whether both readers give the same result. The quick reader may leave a text to the other reader."""
    return told(text, yamltext.read_documents) == told(text, parse_documents)


def is_quick(text: str) -> bool:
    try:
        block_style.read_block_document(text.split("\n---", 1)[0])
    except UnsupportedStyleError:
        return False
    return True


def corpus(folder: Path) -> list[str]:
    files = sorted(each for each in folder.rglob("*") if each.suffix in (".yaml", ".yml"))
    return [each.read_text() for each in files]


def texts(random: Random, count: int, written: list[str]) -> Iterator[str]:
    """Yield random texts. A third of the texts are manifests with some changes."""
    for _ in range(count):
        if written and random.random() < 0.33:
            yield yaml_texts.mutated(random, random.choice(written), random.choice((1, 1, 2, 4)))
        else:
            yield yaml_texts.text(random)


def _is_several(text: str) -> bool:
    return any(line.startswith(("---", "...", "%")) for line in text.splitlines()[1:])


def _error(error: yamltext.YamlError) -> tuple[Any, ...]:
    return str(error), error.line, error.column, error.path


def _exact(value: JSON) -> str:
    """Return the value as text that shows the types of numbers and the order of keys."""
    return repr(value)


def _paths(value: JSON, path: FieldPath = ()) -> Iterator[FieldPath]:
    yield path
    if len(path) < 6 and isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))
    elif len(path) < 6 and isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, (*path, index))


def main(count: int, seed: int, folder: str = "examples") -> int:
    random, seen = Random(seed), Counter[bool]()
    for number, text in enumerate(texts(random, count, corpus(Path(folder)))):
        if not compare(text):
            print(
                f"text {number} is read otherwise:\n{text}\n{told(text, yamltext.read_documents)}\n{told(text, parse_documents)}\n{text!r}"
            )
            return 1
        seen[is_quick(text)] += 1
    print(f"{count} texts, seed {seed}: 0 read otherwise; the quick reader takes {seen[True]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4]))
