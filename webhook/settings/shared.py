"""Settings that several commands share, and settings of what reports and the server's answers say of rules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from webhook.apimachinery import releases
from webhook.input import shipped
from webhook.manifests.configuration_file import NAME, NO_FILE, ConfigurationFile
from webhook.settings import values
from webhook.settings.setting import SettingsBase, declare_option, declare_setting
from webhook.settings.values import EnforcementAction, EngineName

_SINCE: Final = releases.release_as_text(shipped.SINCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(SettingsBase):
    """Which policies are asked, how they are compiled, and what the cluster holds.

    configuration: what the file says besides; what it says of settings is in them (configured.py).
    """

    configuration: ConfigurationFile = NO_FILE

    config: Path | None = declare_setting(
        None, values.file_type(), "Configuration file.", unset=f"{NAME} of the working directory, where there is one"
    )
    no_config: bool = declare_setting(
        False,
        values.switch_type(),
        f"Read no {NAME} of the working directory and no .claimgateignore of named folders, so that they leave out "
        "nothing.",
    )
    config_from: Path | None = declare_setting(
        None,
        values.file_type("DIR"),
        f"Read {NAME} and .claimgateignore from this folder in place of the working directory, such as from a copy of "
        "the branch that a change is merged into.",
        unset="the working directory",
    )
    policies: tuple[Path, ...] = declare_setting(
        (), values.path_list_type("DIR"), "Folders and files of policies beside the shipped ones."
    )
    only: tuple[Path, ...] = declare_setting(
        (),
        values.path_list_type("DIR"),
        "Folders and files of policies in place of the shipped ones and of all others.",
    )
    context: tuple[Path, ...] = declare_setting(
        (),
        values.path_list_type("DIR"),
        "Folders and files of objects that the cluster holds. --kube-context names the context of a kubeconfig.",
    )
    context_is_whole: bool = declare_setting(
        False,
        values.switch_type(),
        "The objects of the files are all that the cluster holds, so that one which is missing does not exist.",
    )
    workloads: tuple[Path, ...] = declare_setting(
        (), values.path_list_type("FILE"), "Further kinds that hold pods: files with rows of the workload table."
    )
    cel_engine: EngineName = declare_setting(
        "compiled", values.choice_type("compiled", "celpy"), "What evaluates CEL; celpy is a second opinion, and slow."
    )
    kubernetes_version: releases.Release = declare_setting(
        releases.DEFAULT,
        values.kubernetes_version_type(),
        f"The Kubernetes release whose CEL policies may use; the shipped ones need {_SINCE} or later.",
    )
    enforcement_action: EnforcementAction = declare_setting(
        "deny",
        values.choice_type("deny", "warn", "audit"),
        "The most that a failed policy does: warn makes denials warnings; audit leaves audit annotations alone and "
        "changes nothing.",
    )
    api_server_text: bool = declare_setting(
        False, values.switch_type(), "Word denials exactly as the API server's own policies do."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSettings(Settings):
    """What is said of the rules besides their ids."""

    docs_address: str = declare_setting(
        "",
        values.text_type("URL"),
        "Where the documentation is published: findings, denials and warnings then link to the pages of their rules.",
        unset="no link but to the sources of rules, in reports",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSettings(ReportSettings):
    """What changes the answers of the verbs that review files, logs and clusters by themselves.

    A new option here reaches each of these verbs (doors.py), and what it does belongs into `assembly`. The server has
    none of these: an API server sends what it reviews.
    """

    authorizer: Path | None = declare_option(
        None,
        values.file_type(),
        "Answers to what policies ask `authorizer`: a list `authorizer`, as suites have it.",
        unset="no question has an answer",
    )
    no_defaults: bool = declare_option(
        False, values.switch_type(), "Review objects as they are written, without the defaults of Kubernetes."
    )
    unbound: bool = declare_option(
        False,
        values.switch_type(),
        "Evaluate policies without a binding, too, as if one applied them everywhere.",
    )
    advice: bool = declare_option(
        False, values.switch_type(), "Tell also what rules of level advice say, which admission never does."
    )
    rule: tuple[str, ...] = declare_option(
        (), values.name_list_type("RULE"), "Report these rules, groups or policies alone."
    )
    skip: tuple[str, ...] = declare_option((), values.name_list_type("RULE"), "Report no such rule, group or policy.")
