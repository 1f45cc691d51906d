"""A verb, flag, setting, format or metric that is added or removed has its lines in the changelog and in the docs.

`python -m tests.test_additions` writes the current names into tests/data/known_names.txt, after the lines exist.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.verbs_page import page
from webhook.report import formats
from webhook.server.counters import Counters
from webhook.server.metrics import Exposition, gauges_of_view
from webhook.settings.serving import ServerSettings
from webhook.settings.setting import declared_settings
from webhook.typer_application import VERBS

ROOT = Path(__file__).parents[1]
KNOWN = Path(__file__).parent / "data" / "known_names.txt"
PAGES = {
    "verb": (["docs/commands.md"], "`claimgate {}"),
    "format": (["docs/formats.md"], "`{}`"),
    "flag": (["docs/verbs.md"], "{}"),
    "setting": (["docs/settings.md"], "`{}`"),
}
"""The page that has each name, and how the name is written there. Some are made: `make docs`."""


def names() -> set[tuple[str, str]]:
    """Names that users may write or read: the kind of each name, and the name."""
    flags = re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", page())
    metrics = {each.name for each in Exposition(Counters(), gauges_of_view(None), version="0").collect()}
    return {
        *(("verb", name) for name in VERBS),
        *(("flag", name) for name in flags),
        *(("setting", each.environment_variable) for each in declared_settings(ServerSettings)),
        *(("format", name) for name in formats.format_names()),
        *(("metric", name) for name in metrics),
    }


def known() -> set[tuple[str, str]]:
    return {(kind, name) for kind, name in map(str.split, KNOWN.read_text().splitlines())}


def unreleased() -> str:
    """The part of the changelog about what is not released."""
    return (ROOT / "CHANGELOG.md").read_text().partition("\n## [Unreleased]")[2].partition("\n## [")[0]


def lacks_line(text: str, kind: str, name: str) -> bool:
    return not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) and kind != "setting"


def test_the_changelog_names_new_and_removed_rules() -> None:
    text = unreleased()
    new = sorted(f"{kind} {name}" for kind, name in names() - known() if lacks_line(text, kind, name))
    assert new == [], "add a line to CHANGELOG.md under [Unreleased], Added, that names each in backquotes"
    gone = sorted(f"{kind} {name}" for kind, name in known() - names() if lacks_line(text, kind, name))
    assert gone == [], "add a line to CHANGELOG.md under [Unreleased], Changed, that says what to use in place of each"


@pytest.mark.parametrize("kind", PAGES)
def test_the_docs_name_each_verb(kind: str) -> None:
    pages, form = PAGES[kind]
    text = "\n".join((ROOT / each).read_text() for each in pages)
    missing = sorted(name for each, name in names() if each == kind and form.format(name) not in text)
    assert missing == [], f"add a row to {pages[0]} for each, or run make docs"


def test_a_new_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "ponder", "Think about a manifest.")
    monkeypatch.setattr("tests.test_additions.page", lambda: "| `--colour NAME` | Paint it. |")
    assert names() - known() == {("verb", "ponder"), ("flag", "--colour")}
    assert lacks_line(unreleased(), "verb", "ponder")


if __name__ == "__main__":
    KNOWN.write_text("".join(f"{kind} {name}\n" for kind, name in sorted(names())))
