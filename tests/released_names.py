"""The names that users write or read, and the names of the last release.

`python -m tests.stricter_rules --record X.Y.Z`, the last step of a release, records the names. CHANGELOG names each name
that is added or removed afterwards.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from tests.verbs_page import page
from webhook import __version__
from webhook.report import formats
from webhook.server.counters import Counters
from webhook.server.metrics import Exposition
from webhook.server.runtime import gauges_of_view
from webhook.settings.serving import ServerSettings
from webhook.settings.setting import declared_settings
from webhook.typer_application import VERBS

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tests" / "data" / "released_names.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
Name: TypeAlias = tuple[str, str]
"""The kind of a name (verb, flag, setting, format or metric), and the name"""


def current_names(verbs_page: str | None = None) -> set[Name]:
    """Return all names that users write or read. The flags are those of the page of verbs."""
    flags = re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", verbs_page or page())
    metrics = {each.name for each in Exposition(Counters(), gauges_of_view(None), version="0").collect()}
    return {
        *(("verb", name) for name in VERBS),
        *(("flag", name) for name in flags),
        *(("setting", each.environment_variable) for each in declared_settings(ServerSettings)),
        *(("format", name) for name in formats.format_names()),
        *(("metric", name) for name in metrics),
    }


def released_names() -> set[Name]:
    lines = (each.split() for each in RECORD.read_text().splitlines() if not each.startswith("#"))
    return {(kind, name) for kind, name in lines}


def released_version() -> str:
    return RECORD.read_text().partition("\n")[0].removeprefix("# ")


def changes_since(version: str, changelog: str) -> str:
    """Return what is above the section of a version."""
    return changelog.partition(f"\n## [{version}]")[0]


def is_named(text: str, name: Name) -> bool:
    """Return whether a text has the name in backquotes. A setting is named by its flag."""
    kind, word = name
    return kind == "setting" or any(
        re.search(rf"(?<![\w-]){re.escape(word)}(?:_total)?(?![\w-])", quoted)
        for quoted in re.findall(r"`([^`]+)`", text)
    )


def record(version: str) -> None:
    """Raises SystemExit if the changelog has no release of this version, or unreleased changes."""
    changelog = CHANGELOG.read_text()
    if version != __version__ or f"\n## [{version}] - " not in changelog or "\n## [Unreleased]" in changelog:
        raise SystemExit(
            f"{version} is not released: set the version in webhook/__init__.py, and rename [Unreleased] of "
            "CHANGELOG.md to the version (CONTRIBUTING.md, A release)"
        )
    names = "".join(f"{kind} {name}\n" for kind, name in sorted(current_names()))
    RECORD.write_text(f"# {version}\n{names}")
