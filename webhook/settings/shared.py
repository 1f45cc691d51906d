"""Settings that several commands share, and settings for texts about rules in reports and in the server's answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from webhook.apimachinery import releases
from webhook.cluster.site_params import OWN_NAMESPACE
from webhook.input import shipped
from webhook.manifests.configuration_file import NAME, NO_FILE, ConfigurationFile
from webhook.settings import values
from webhook.settings.setting import SettingsBase, declare_option, declare_setting
from webhook.settings.values import EnforcementAction, EngineName

_SINCE: Final = releases.release_as_text(shipped.SINCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings(SettingsBase):
    """Which policies are evaluated, how they are compiled, and which objects the cluster has.

    configuration: the other contents of the file; its settings are in them already (configured.py).
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
        "The namespace where claimgate runs: its ConfigMaps are parameters wherever a policy of a file names "
        f"{OWN_NAMESPACE}.",
    )


@dataclass(frozen=True, kw_only=True)  # without slots, so that two classes inherit from it
class AnswerSettings:
    """The settings that a review reads as they are: `ReviewOptions` has these fields (evaluation/review_options.py).

    A new one here is an option of the server and of all verbs that review objects.
    """

    enforcement_action: EnforcementAction = declare_setting(
        "deny",
        values.choice_type("deny", "warn", "audit"),
        "The strictest action of policies. warn: warn instead of deny. audit: write audit annotations only.",
    )
    api_server_text: bool = declare_setting(
        False, values.switch_type(), "Write denials exactly as the API server writes those of its own policies."
    )
    warn_of_mutations: bool = declare_setting(
        False, values.switch_type(), "Warn users of the fields that mutating policies changed, with the policy."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(AnswerSettings, PolicySettings):
    """The settings that the server shares with all verbs that review objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSettings(Settings):
    """The metadata of the rules besides their ids."""

    docs_address: str = declare_setting(
        "",
        values.text_type("URL"),
        "Address of your published documentation: findings, denials and warnings link to the pages of their rules.",
        unset="reports link to the sources of rules",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSettings(ReportSettings):
    """The settings that change the answers of the verbs that review files, logs and clusters.

    A new option here reaches each of these verbs (doors.py), and its effect belongs into `assembly`. The server has
    none of these options, because an API server sends the objects.
    """

    authorizer: Path | None = declare_option(
        None,
        values.file_type(),
        "Answers for `authorizer` in policies: a file with a list `authorizer`, as in suites.",
        unset="no answers",
    )
    no_defaults: bool = declare_option(False, values.switch_type(), "Do not set the defaults of Kubernetes in objects.")
    unbound: bool = declare_option(
        False,
        values.switch_type(),
        "Also evaluate policies without a binding, on all objects.",
    )
    advice: bool = declare_option(False, values.switch_type(), "Also report advice, which the webhook never reports.")
    rule: tuple[str, ...] = declare_option(
        (), values.name_list_type("RULE"), "Report only these rules, groups or policies."
    )
    skip: tuple[str, ...] = declare_option(
        (), values.name_list_type("RULE"), "Do not report these rules, groups or policies."
    )
