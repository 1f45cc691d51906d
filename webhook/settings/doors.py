"""The verbs that review objects, and which options each of them has.

Every setting of `ReviewSettings` and of `ServerSettings` that changes an answer is an option of every verb, unless
`LEFT_OUT` says why not. A setting that is declared there needs no further line to reach all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from webhook.settings.setting import Setting, SettingsBase, declared_settings

Door: TypeAlias = Literal["serve", "replay", "audit", "test", "simulate", "backtest"]
"""A verb that reviews objects."""

_CASE: Final = "a case says it"
_TEXT: Final = "no text of an answer is shown"
_PAGE: Final = "`claimgate explain RULE` has the page"
_VERDICT: Final = "it tells verdicts, which no severity changes"
_STAYING: Final = "a baseline lists findings of files that stay"
LEFT_OUT: Final[Mapping[str, Mapping[Door, str]]] = {
    "context": {"test": _CASE},
    "context_is_whole": {"test": _CASE},
    "enforcement_action": {"test": "a case expects what the bindings do"},
    "api_server_text": {"audit": _TEXT, "simulate": _TEXT, "backtest": _TEXT, "test": "cases have our own texts"},
    "docs_address": {"test": "cases have texts without links", "simulate": _PAGE, "backtest": _PAGE},
    "authorizer": {"test": _CASE},
    "no_defaults": {"test": "a case says it: `defaults`", "backtest": "a log has objects with their defaults"},
    "unbound": {"test": "a suite tries the bindings, too"},
    "advice": {"backtest": "it counts what admission does", "simulate": "advice keeps no job from starting"},
    "rule": {"test": "`--run` chooses cases"},
    "skip": {"test": "`--run` chooses cases"},
}
"""For each option the verbs that do not have it, with the reason."""
NOT_OF_SERVER: Final[Mapping[str, str]] = {
    "authorizer": "`--authorizer` is a switch there: the API server is asked",
    "no_defaults": "the API server has filled them in",
    "unbound": "a cluster has bindings",
    "advice": "admission never tells advice",
    "rule": "`levels` of claimgate.yaml say it for all",
    "skip": "`levels` of claimgate.yaml say it for all",
}
"""For each option of `ReviewSettings` why the server does not have it."""
REPORT_FLAGS: Final[Mapping[str, Mapping[Door, str]]] = {
    "--fail-on": {
        "serve": "it has no exit code for reviews",
        "test": "a case passes or fails",
        "simulate": "the exit code says whether the job starts",
    },
    "--min-severity": {
        "serve": _VERDICT,
        "replay": _VERDICT,
        "test": _CASE,
        "simulate": _VERDICT,
        "backtest": _VERDICT,
    },
    "--baseline": {
        "serve": "what was stored before warns alone",
        "replay": _STAYING,
        "test": _STAYING,
        "simulate": _STAYING,
        "backtest": "`--against` compares",
    },
}
"""For each flag of reports the verbs that do not have it, with the reason."""


def settings_of_door(kind: type[SettingsBase], door: Door) -> tuple[Setting, ...]:
    """Return the settings of a class that a verb has a flag for."""
    return tuple(each for each in declared_settings(kind) if door not in LEFT_OUT.get(each.name, {}))
