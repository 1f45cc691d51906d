"""Which verb has which option that changes an answer: `python -m tests.options_page` writes docs/options.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from webhook.settings.setting import declared_settings
from webhook.settings.shared import NOT_OF_SERVER, REPORT_FLAGS, ReportSettings, ReviewSettings, Verb, reason_left_out

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
DOORS: tuple[Verb, ...] = get_args(Verb)
_HEAD = """# Options and verbs

This page lists the options that change an answer, for the six verbs that review objects. If a verb does not have an
option, the cell says why. (`make docs` writes this page.)
"""
_OF_FILE: Mapping[str, Mapping[str, str]] = {
    **{
        name: {"test": "of the claimgate.yaml beside the suite"}
        for name in (
            "`levels`",
            "`params`",
            "`releases`",
            "`exceptions`, `ignoreAnnotations`, `policyExceptions`",
            "`ignore`, `exemptions`",
        )
    },
    "`ignoreComments`": dict.fromkeys(
        ("serve", "replay", "test", "simulate", "backtest"), "comments are in the files that `audit` reads"
    ),
    "`report`": {
        "serve": "it writes no report",
        "replay": "it prints whole answers",
        "test": "a case passes or fails",
        "simulate": "it reports everything about the start",
        "backtest": "it counts all requests",
    },
}


def page() -> str:
    server = {each.name for each in declared_settings(ReportSettings)}
    rows = {
        f"`{each.flag}`": {
            **{door: reason_left_out(each.name, door) for door in DOORS},
            **({} if each.name in server else {"serve": NOT_OF_SERVER[each.name]}),
        }
        for each in declared_settings(ReviewSettings)
    }
    rows |= {f"`{flag}`": without for flag, without in REPORT_FLAGS.items()}
    lines = [_HEAD, *_table("option", rows), "", "## Fields of claimgate.yaml", "", *_table("field", _OF_FILE), ""]
    return "\n".join(lines)


def _table(what: str, rows: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield f"| {what} | {' | '.join(DOORS)} |"
    yield "|---|" + "---|" * len(DOORS)
    for name, without in rows.items():
        yield f"| {name} | {' | '.join(_cell(name, without.get(door, '')) for door in DOORS)} |"


def _cell(name: str, reason: str) -> str:
    """Return the text of a cell: yes, or no with the reason. An option counts as `yes` if files in the folder of a
    suite set it.
    """
    if reason.startswith("of the "):
        return f"yes, {reason}"
    return f"no: {reason}" if reason else "yes"


if __name__ == "__main__":
    PAGE.write_text(page())
