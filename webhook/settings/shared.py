"""Declares the settings that several commands share, and which options each verb that reviews objects has.

A setting that changes an answer is an option of every verb, unless `LEFT_OUT` or `NOT_OF_SERVER` has a reason against
it. Every verb except `test` gets a new setting automatically. In `test`, each case sets the options of its review.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

from webhook.apimachinery import releases
from webhook.cluster.site_params import OWN_NAMESPACE
from webhook.input import shipped
from webhook.manifests.configuration import NAME, NO_FILE, ConfigurationFile
from webhook.settings import values
from webhook.settings.setting import Setting, SettingsBase, declare_option, declare_setting, declared_settings
from webhook.settings.values import EnforcementAction, EngineName

_SINCE: Final = releases.release_as_text(shipped.SINCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings(SettingsBase):
    """Settings about the policies, how they are compiled, and the objects of the cluster.

    `configuration` is the configuration file. Its settings are already merged into these settings (configured.py).
    """

    configuration: ConfigurationFile = NO_FILE

    config: Path | None = declare_setting(
        None, values.file_type(), "Configuration file.", unset=f"{NAME} in the working directory"
    )
    no_config: bool = declare_setting(
        False,
        values.switch_type(),
        f"Ignore {NAME} of the working directory and .claimgateignore of folders.",
    )
    config_from: Path | None = declare_setting(
        None,
        values.file_type("DIR"),
        f"Read {NAME} and .claimgateignore from this folder, such as a copy of the target branch.",
        unset="the working directory",
    )
    policies: tuple[Path, ...] = declare_setting(
        (), values.path_list_type("DIR"), "Use these policies in addition to the shipped policies: folders and files."
    )
    only: tuple[Path, ...] = declare_setting(
        (),
        values.path_list_type("DIR"),
        "Use only these policies: folders and files.",
    )
    context: tuple[Path, ...] = declare_setting(
        (),
        values.path_list_type("DIR"),
        "Folders and files with objects of the cluster; not a context of the kubeconfig.",
    )
    context_is_whole: bool = declare_setting(
        False,
        values.switch_type(),
        "The files have all objects of the cluster: a missing object does not exist.",
    )
    workloads: tuple[Path, ...] = declare_setting(
        (), values.path_list_type("FILE"), "Add kinds that have pods: files with rows of the workload table."
    )
    cel_engine: EngineName = declare_setting(
        "compiled", values.choice_type("compiled", "celpy"), "The CEL engine; celpy is slower, for comparison only."
    )
    kubernetes_version: releases.Release = declare_setting(
        releases.DEFAULT,
        values.kubernetes_version_type(),
        f"The Kubernetes release for CEL; the shipped policies need {_SINCE} or later.",
    )
    own_namespace: str = declare_setting(
        OWN_NAMESPACE,
        values.namespace_type(),
        f"The namespace where claimgate runs. In files, {OWN_NAMESPACE} means this namespace.",
    )


@dataclass(frozen=True, kw_only=True)  # no slots, because a class inherits from two of these classes
class AnswerSettings:
    """The settings that are also fields of `ReviewOptions` (evaluation/review_options.py). The server and all verbs
    that review objects have these settings.
    """

    enforcement_action: EnforcementAction = declare_setting(
        "deny",
        values.choice_type("deny", "warn", "audit"),
        "The strictest action of policies. warn: warn instead of deny. audit: write audit annotations only.",
    )
    api_server_text: bool = declare_setting(
        False, values.switch_type(), "Write denials exactly as API servers write the denials of their own policies."
    )
    warn_of_mutations: bool = declare_setting(
        False, values.switch_type(), "Warn users of each field that a mutating policy changed, and name the policy."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(AnswerSettings, PolicySettings):
    """The settings that the server shares with all verbs that review objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSettings(Settings):
    """Settings for links to rules in reports."""

    docs_address: str = declare_setting(
        "",
        values.text_type("URL"),
        "Address of your published documentation: findings, denials and warnings link to the pages of their rules.",
        unset="reports link to the sources of rules",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSettings(ReportSettings):
    """The settings that change the answers of the verbs that review files, logs and clusters.

    `assembly` implements these options. The server does not have these options (NOT_OF_SERVER has the reasons).
    """

    authorizer: Path | None = declare_option(
        None,
        values.file_type(),
        "A file with the answers for `authorizer` in policies: a list `authorizer`, as in suites.",
        unset="no answers",
    )
    no_defaults: bool = declare_option(False, values.switch_type(), "Do not set the defaults of Kubernetes in objects.")
    unbound: bool = declare_option(
        False,
        values.switch_type(),
        "Also evaluate policies without a binding, on all objects that they match.",
    )
    advice: bool = declare_option(False, values.switch_type(), "Also report advice, which the webhook never reports.")
    rule: tuple[str, ...] = declare_option(
        (),
        values.name_list_type("RULE", with_commas=True),
        "Report only these rules, groups or policies, separated by commas.",
    )
    skip: tuple[str, ...] = declare_option(
        (),
        values.name_list_type("RULE", with_commas=True),
        "Do not report these rules, groups or policies, separated by commas.",
    )


S = TypeVar("S", bound=SettingsBase)
Verb: TypeAlias = Literal["serve", "replay", "audit", "test", "simulate", "backtest"]
"""A verb that reviews objects."""

_CASE: Final = "each case sets the option"
_TEXT: Final = "the verb prints no answers"
_PAGE: Final = "`claimgate explain RULE` has the page"
_VERDICT: Final = "the severity does not change an answer"
_BASELINE: Final = "a baseline is for files that are audited again"
LEFT_OUT: Final[Mapping[str, Mapping[Verb, str]]] = {
    "enforcement_action": {"test": "a case expects the action of the binding"},
    "api_server_text": {"audit": _TEXT, "simulate": _TEXT, "backtest": _TEXT, "test": "cases expect the default texts"},
    "warn_of_mutations": {
        "audit": _TEXT,
        "simulate": _TEXT,
        "backtest": _TEXT,
        "test": "cases expect patches",
    },
    "docs_address": {"test": "cases expect texts without links", "simulate": _PAGE, "backtest": _PAGE},
    "no_defaults": {"test": "each case sets `defaults`", "backtest": "objects in a log have their defaults"},
    "unbound": {"test": "a suite also tests the bindings"},
    "advice": {"backtest": "the verb counts answers of the webhook", "simulate": "advice does not prevent a start"},
    "rule": {"test": "`--run` chooses cases"},
    "skip": {"test": "`--run` chooses cases"},
}
"""For each option, the verbs that lack it, with the reason."""
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
"""The options of `test`: how policies are read and compiled, and advice, which is printed after the cases."""
NOT_OF_SERVER: Final[Mapping[str, str]] = {
    "authorizer": "`serve --authorizer` is a switch, and the API server answers",
    "no_defaults": "the API server has set the defaults",
    "unbound": "a cluster has bindings",
    "advice": "the webhook never reports advice",
    "rule": "use `levels` of claimgate.yaml",
    "skip": "use `levels` of claimgate.yaml",
}
"""For each option of `ReviewSettings`, the reason why the server lacks it."""
REPORT_FLAGS: Final[Mapping[str, Mapping[Verb, str]]] = {
    "--fail-on": {
        "serve": "a review has no exit code",
        "test": "a case passes or fails",
        "simulate": "the exit code says whether the job starts",
    },
    "--min-severity": {
        "serve": _VERDICT,
        "replay": _VERDICT,
        "test": "a case passes or fails",
        "simulate": _VERDICT,
        "backtest": _VERDICT,
    },
    "--baseline": {
        "serve": "problems of stored objects only warn",
        "replay": _BASELINE,
        "test": _BASELINE,
        "simulate": _BASELINE,
        "backtest": "use `--against`",
    },
}
"""For each flag of reports, the verbs that lack it, with the reason."""


def settings_of_verb(kind: type[SettingsBase], verb: Verb) -> tuple[Setting, ...]:
    """Return the settings of a class for which a verb has a flag."""
    return tuple(each for each in declared_settings(kind) if not reason_left_out(each.name, verb))


def reason_left_out(name: str, verb: Verb) -> str:
    """Return why a verb does not have an option; "" if it has the option."""
    reason = LEFT_OUT.get(name, {}).get(verb, "")
    return reason or (_CASE if verb == "test" and name not in OF_TEST else "")


def without_left_out(chosen: S, verb: Verb) -> S:
    """Return the settings with the default of each option that the verb lacks; a variable may have set the option."""
    declared = declared_settings(type(chosen))
    return replace(chosen, **{each.name: each.default for each in declared if reason_left_out(each.name, verb)})
