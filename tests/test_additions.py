"""The changelog and the docs name each added or removed verb, flag, setting, format and metric."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import released_names
from tests.released_names import changes_since, current_names, is_named, record, released_version
from tests.verbs_page import page
from webhook.typer_application import VERBS

ROOT = Path(__file__).parents[1]
PAGES = {
    "verb": (["docs/commands.md"], "`claimgate {}"),
    "format": (["docs/formats.md"], "`{}`"),
    "flag": (["docs/verbs.md"], "{}"),
    "setting": (["docs/settings.md"], "`{}`"),
}
"""The page of each kind of name, and how it writes the name. `make docs` writes some of these pages."""


def unreleased() -> str:
    return changes_since(released_version(), released_names.CHANGELOG.read_text())


def test_the_changelog_names_new_and_removed_names() -> None:
    before, now, text = released_names.released_names(), current_names(), unreleased()
    new = sorted(" ".join(name) for name in now - before if not is_named(text, name))
    assert new == [], "CHANGELOG.md: under [Unreleased], Added, write a line that names each in backquotes"
    gone = sorted(" ".join(name) for name in before - now if not is_named(text, name))
    assert gone == [], "CHANGELOG.md: under [Unreleased], Changed, write a line that says what to use in place of each"


@pytest.mark.parametrize("kind", PAGES)
def test_the_docs_name_each_verb(kind: str) -> None:
    pages, form = PAGES[kind]
    text = "\n".join((ROOT / each).read_text() for each in pages)
    missing = sorted(name for each, name in current_names() if each == kind and form.format(name) not in text)
    assert missing == [], f"{pages[0]}: add a row for each, or run make docs"


def test_a_new_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    before, with_flag = current_names(), page() + "| `--colour NAME` | Paint it. |\n"
    monkeypatch.setitem(VERBS, "ponder", "Think about a manifest.")
    new = {("verb", "ponder"), ("flag", "--colour")}
    assert current_names(with_flag) - before == new
    assert [name for name in new if is_named(unreleased(), name)] == []
    assert [name for name in new if not is_named("- `claimgate ponder` has `--colour`.", name)] == []
    assert not is_named("- You may ponder.", ("verb", "ponder"))


def test_names_are_recorded_only_at_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changelog, names = tmp_path / "CHANGELOG.md", tmp_path / "names.txt"
    monkeypatch.setattr(released_names, "CHANGELOG", changelog)
    monkeypatch.setattr(released_names, "RECORD", names)
    monkeypatch.setattr(released_names, "__version__", "7.0.0")
    changelog.write_text("# Changelog\n\n## [Unreleased]\n\n## [7.0.0] - 2030-01-01\n\n## [6.0.0] - 2029-01-01\n")
    for version in ("7.0.0", "7.1.0"):
        with pytest.raises(SystemExit, match="is not released"):
            record(version)
    changelog.write_text("# Changelog\n\n## [7.0.0] - 2030-01-01\n\n- `x`\n\n## [6.0.0] - 2029-01-01\n")
    record("7.0.0")
    assert (released_version(), released_names.released_names()) == ("7.0.0", current_names())
    assert is_named(changes_since("6.0.0", changelog.read_text()), ("format", "x"))
