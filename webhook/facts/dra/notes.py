"""One thing that is wrong with a claim, a class or a configuration, as the fact `dra` shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.attributes import JSON
from webhook.paths import FieldPath, render
from webhook.schema.values import Breach
from webhook.wording import shown


def note(what: str, at: FieldPath, found: JSON = "", expected: str = "", near: str = "") -> JSON:
    """One thing that is wrong; `what` says how, the rest fills the sentence."""
    return {
        "what": what,
        "path": render(at),
        "found": shown(found) if found != "" else "",
        "expected": expected,
        "nearest": near,
    }


def notes_of(breaches: Iterable[Breach]) -> Iterator[JSON]:
    """What the declarations of an object say, as such notes."""
    for each in breaches:
        yield note(each.what, each.at, each.given, each.expected, each.nearest)
