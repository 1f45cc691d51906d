"""The verbs that review objects, and the options of each of them.

Every setting of `ReviewSettings` and of `ServerSettings` that changes an answer is an option of every verb, unless
`LEFT_OUT` says why not. A declared setting reaches every verb without another line, except `test`: its cases set the
options of their reviews.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias, TypeVar

from webhook.settings.setting import Setting, SettingsBase, declared_settings

S = TypeVar("S", bound=SettingsBase)
Door: TypeAlias = Literal["serve", "replay", "audit", "test", "simulate", "backtest"]
"""A verb that reviews objects."""

_CASE: Final = "each case sets it"
_TEXT: Final = "it prints no answers"
_PAGE: Final = "`claimgate explain RULE` has the page"
_VERDICT: Final = "the severity does not change an answer"
_STAYING: Final = "a baseline is for files that are audited again"
LEFT_OUT: Final[Mapping[str, Mapping[Door, str]]] = {
    "enforcement_action": {"test": "a case expects the action of the binding"},
    "api_server_text": {"audit": _TEXT, "simulate": _TEXT, "backtest": _TEXT, "test": "cases expect the default texts"},
    "warn_of_mutations": {
        "audit": _TEXT,
        "simulate": _TEXT,
        "backtest": _TEXT,
        "test": "cases expect patches",
    },
    "docs_address": {"test": "cases expect texts without links", "simulate": _PAGE, "backtest": _PAGE},
    "no_defaults": {"test": "each case sets it: `defaults`", "backtest": "objects in a log have their defaults"},
    "unbound": {"test": "a suite also tests the bindings"},
    "advice": {"backtest": "it counts answers of the webhook", "simulate": "advice does not prevent a start"},
    "rule": {"test": "`--run` chooses cases"},
    "skip": {"test": "`--run` chooses cases"},
}
"""For each option, the verbs without it, with the reason."""
OF_TEST: Final = frozenset(
    (
        "config",
        "no_config",
        "config_from",
        "policies",
        "only",
        "workloads",
        "cel_engine",
        "kubernetes_version",
        "own_namespace",
        "advice",
    )
)
"""The options of `test`: how policies are read and compiled, and advice, which it prints after the cases."""
NOT_OF_SERVER: Final[Mapping[str, str]] = {
    "authorizer": "there it is a switch: the API server answers",
    "no_defaults": "the API server has set the defaults",
    "unbound": "a cluster has bindings",
    "advice": "the webhook never reports advice",
    "rule": "use `levels` of claimgate.yaml",
    "skip": "use `levels` of claimgate.yaml",
}
"""For each option of `ReviewSettings`, why the server does not have it."""
REPORT_FLAGS: Final[Mapping[str, Mapping[Door, str]]] = {
    "--fail-on": {
        "serve": "a review has no exit code",
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
        "serve": "problems of stored objects only warn",
        "replay": _STAYING,
        "test": _STAYING,
        "simulate": _STAYING,
        "backtest": "use `--against`",
    },
}
"""For each flag of reports, the verbs without it, with the reason."""


def settings_of_door(kind: type[SettingsBase], door: Door) -> tuple[Setting, ...]:
    """Return the settings of a class that a verb has a flag for."""
    return tuple(each for each in declared_settings(kind) if not reason_left_out(each.name, door))


def reason_left_out(name: str, door: Door) -> str:
    """Return why a verb does not have an option; "" if it has."""
    reason = LEFT_OUT.get(name, {}).get(door, "")
    return reason or (_CASE if door == "test" and name not in OF_TEST else "")


def without_left_out(chosen: S, door: Door) -> S:
    """Return the settings with the defaults of those that a verb leaves out, which a variable may set."""
    declared = declared_settings(type(chosen))
    return replace(chosen, **{each.name: each.default for each in declared if reason_left_out(each.name, door)})
