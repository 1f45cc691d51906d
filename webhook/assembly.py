"""Loads what a command needs for reviews: the policies, the workload table and the view of the cluster that flags
name.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from msgspec import Struct

from webhook.apimachinery import releases
from webhook.apimachinery.attributes import JSON
from webhook.cluster.file_tree import FileTree
from webhook.cluster.files import FilesCluster
from webhook.errors import ConfigurationError, InputError, InputProblem
from webhook.evaluation.review_options import DEFAULT, ReviewOptions
from webhook.input import documents, shipped
from webhook.manifests.authorizer_answers import read_authorizer_file
from webhook.manifests.configuration import ConfigurationFile
from webhook.manifests.leave_alone import describe_end
from webhook.policy.configured_rules import apply_configuration_to_policies, refuse_unknown_rules
from webhook.policy.load import (
    EngineName,
    Options,
    PolicyDocuments,
    compile_policy_documents,
    load_policy_set,
    read_policy_documents,
)
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet
from webhook.policy.unbound import with_default_bindings
from webhook.settings.setting import declared_settings
from webhook.settings.shared import ReviewSettings, Settings
from webhook.workloads import table
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import InputFile


class PolicySources(Struct, frozen=True, kw_only=True):
    """Everything from which a policy set is compiled. Unlike a policy set, it can be sent to another process.

    The other fields are those of `Options`. unbound: whether policies without a binding are also evaluated.
    """

    documents: PolicyDocuments
    engine: EngineName
    version: releases.Release
    table: table.Table
    lazy: bool
    own_namespace: str
    configuration: ConfigurationFile
    unbound: bool

    def compile(self) -> PolicySet:
        """Compile the policies.

        Raises:
            PolicyError: every problem of the policies.
            InputError: every rule that the configuration names and that does not exist.
        """
        options = Options(
            engine=self.engine,
            version=self.version,
            table=self.table,
            lazy=self.lazy,
            own_namespace=self.own_namespace,
        )
        compiled = apply_configuration_to_policies(
            compile_policy_documents(self.documents, options), self.configuration
        )
        return with_default_bindings(compiled) if self.unbound else compiled


class ReviewAssembly(Struct, frozen=True, kw_only=True):
    """The policies, the workload table and the objects with which all reviews of a command are evaluated.

    `options` are the options of each review. `fills_defaults`: whether plain objects get the defaults of Kubernetes.
    It can be sent to another process, which compiles the policies again from their `sources`.
    """

    policies: PolicySet
    table: table.Table
    files: FileTree
    sources: PolicySources
    options: ReviewOptions = DEFAULT
    fills_defaults: bool = True

    def __reduce__(self) -> tuple[Callable[..., ReviewAssembly], tuple[PolicySources, FileTree, ReviewOptions, bool]]:
        return _recompile_assembly, (self.sources, self.files, self.options, self.fills_defaults)


def _recompile_assembly(
    sources: PolicySources, files: FileTree, options: ReviewOptions, fills_defaults: bool
) -> ReviewAssembly:
    return ReviewAssembly(
        policies=sources.compile(),
        table=sources.table,
        files=files,
        sources=sources,
        options=options,
        fills_defaults=fills_defaults,
    )


def create_compile_options(chosen: Settings) -> Options:
    """Return the options for compiling policies.

    Raises:
        InputError: every problem of the workload tables.
    """
    return Options(
        engine=chosen.cel_engine,
        version=chosen.kubernetes_version,
        table=table.load_table(chosen.workloads),
        own_namespace=chosen.own_namespace,
    )


def policy_folders_of_settings(chosen: Settings) -> tuple[Path, ...]:
    """Return the folders of policies: the shipped and the added folders, or only those of --only.

    Raises:
        ConfigurationError: the version does not have the CEL features that the shipped policies need.
    """
    if chosen.only:
        return chosen.only
    if chosen.kubernetes_version < shipped.SINCE:
        least = releases.release_as_text(shipped.SINCE)
        told = f"--kubernetes-version: the shipped policies use the CEL of Kubernetes {least} and later"
        raise ConfigurationError(f"{told}; name your own policies with --only, or leave out --kubernetes-version")
    own = shipped.policies_folder()
    return (own, *(each for each in chosen.policies if not _is_same_folder(each, own)))


def _is_same_folder(one: Path, other: Path) -> bool:
    """Return whether two paths are the same folder; users of a checkout may name the folder of the shipped
    policies.
    """
    return one.exists() and one.samefile(other)


def load_policies_of_settings(chosen: Settings, how: Options) -> PolicySet:
    """Load the policies of the settings, with their configuration.

    Raises:
        PolicyError: every problem of the policies.
        InputError: every rule that the configuration names and that does not exist.
    """
    return apply_configuration_to_policies(
        load_policy_set(policy_folders_of_settings(chosen), how), chosen.configuration
    )


def describe_policy_sets_unless_default(chosen: Settings) -> str:
    """Return a line that names the sets of policies; "" if only the shipped policies or those of --only are in use."""
    is_only = bool(chosen.only) and not chosen.configuration.document
    if is_only or not (chosen.policies or chosen.configuration.document):
        return ""
    return f"policies: {describe_policy_sets_in_use(chosen)}"


def describe_policy_sets_in_use(chosen: Settings) -> str:
    """Return a line that names the sets of policies in use."""
    named = [
        "the shipped ones" if each == shipped.policies_folder() else str(each)
        for each in policy_folders_of_settings(chosen)
    ]
    under = f", under {chosen.configuration.path}" if chosen.configuration.document else ""
    return f"{', '.join(named)}{under}"


def exceptions_at_their_end(file: ConfigurationFile, day: dt.date, *, notice_days: int = -1) -> Iterator[str]:
    """Yield the exceptions and exemptions that have expired or end within some days, with their places."""
    for path, each in file.value.time_limits:
        if each.days_left(day) <= notice_days:
            yield str(file.problem(path, describe_end(each, day)))


def assemble_policies_and_context(
    chosen: Settings, *, objects: Iterable[tuple[str, JSON]] = (), is_complete: bool = True
) -> ReviewAssembly:
    """Load policies (by default the shipped policies) and context.

    Args:
        chosen: the settings of the command.
        objects: the objects that the command is about, each with its file.
        is_complete: whether all of their files could be read.

    Raises:
        PolicyError: every problem of the policies.
        InputError: every problem of the workload tables, the context or the answers of the authorizer.
        ConfigurationError: a rule that the settings name and that does not exist.
    """
    sources = read_policy_sources(chosen)
    return assembly_with_files(chosen, sources, sources.compile(), objects=objects, is_complete=is_complete)


def read_policy_sources(chosen: Settings) -> PolicySources:
    """Read the policies of the settings.

    Raises:
        PolicyError: a file or folder does not exist or cannot be listed.
        InputError: every problem of the workload tables.
    """
    how = create_compile_options(chosen)
    return PolicySources(
        documents=read_policy_documents(policy_folders_of_settings(chosen)),
        engine=chosen.cel_engine,
        version=how.version,
        table=how.table,
        # the shipped policies are known to compile, and one review needs a few of 30
        lazy=not (chosen.policies or chosen.only),
        own_namespace=chosen.own_namespace,
        configuration=chosen.configuration,
        unbound=isinstance(chosen, ReviewSettings) and chosen.unbound,
    )


def review_options_of_settings(chosen: Settings, policies: PolicySet) -> ReviewOptions:
    """Return the options of each review from the settings: every field of `ReviewOptions` that is a setting.

    Raises:
        InputError: every problem of the answers of the authorizer.
        ConfigurationError: a rule, group or policy that the settings name and that does not exist.
    """
    converted: dict[str, Any] = {"authorizer": None}  # the server asks the API server in each review
    if isinstance(chosen, ReviewSettings):
        for flag, names in (("--rule", chosen.rule), ("--skip", chosen.skip)):
            refuse_unknown_rules(flag, names, policies)
        converted = {
            "authorizer": read_authorizer_file(chosen.authorizer) if chosen.authorizer else None,
            "rules": frozenset(chosen.rule),
            "skip": frozenset(chosen.skip),
        }
    shared = {each.name for each in declared_settings(type(chosen))} & {field.name for field in fields(ReviewOptions)}
    return ReviewOptions(**{**{name: getattr(chosen, name) for name in shared}, **converted})


def assembly_with_files(
    chosen: Settings,
    sources: PolicySources,
    loaded: PolicySet,
    *,
    objects: Iterable[tuple[str, JSON]] = (),
    files: Iterable[str] = (),
    is_complete: bool = True,
) -> ReviewAssembly:
    """Return loaded policies with the context of the settings.

    Args:
        chosen: the settings of the command.
        sources: the sources of the compiled policies.
        loaded: the policies.
        objects: the objects that the command is about, or those that policies look up, each with its file.
        files: all files that have objects, where not all objects are given.
        is_complete: whether all files could be read.

    Raises:
        InputError: every problem of the context.
    """
    context = read_context_documents(chosen, loaded)
    tree = FileTree(
        objects,
        files=files,
        context=((each.source, each.value) for each in context.documents),
        is_whole=chosen.context_is_whole and is_complete and not context.templates,
    )
    return ReviewAssembly(
        policies=loaded,
        table=sources.table,
        files=tree,
        sources=sources,
        options=review_options_of_settings(chosen, loaded),
        fills_defaults=not (isinstance(chosen, ReviewSettings) and chosen.no_defaults),
    )


def objects_of_files(files: Iterable[InputFile]) -> tuple[JSON, ...]:
    """Return the objects of files.

    Raises:
        InputError: something could not be read.
    """
    inputs = documents.documents_of_files(files)
    if inputs.problems:
        raise InputError(*inputs.problems)
    return tuple(each.value for each in inputs.documents)


def ignore_patterns_finder(chosen: Settings) -> documents.PatternsOfFolder:
    """Return the function that finds the patterns of `.claimgateignore` for a folder: in the folder, nowhere, or in a
    copy.
    """
    if chosen.no_config:
        return lambda _folder: ()
    copy = chosen.config_from
    return documents.ignore_patterns if copy is None else lambda folder: documents.ignore_patterns_of_copy(folder, copy)


def read_context_documents(chosen: Settings, policies: PolicySet) -> documents.InputDocuments:
    """Return the objects of context folders and files.

    Raises:
        InputError: something could not be read, or a param of the policies names a rule that does not exist.
    """
    inputs = documents.read_documents(chosen.context, patterns=ignore_patterns_finder(chosen))
    rules = ParamRuleChecker(policies.policies, policies.registry, own_namespace=policies.own_namespace)
    if problems := (*inputs.problems, *check_rule_names_in_params(rules, inputs)):
        raise InputError(*problems)
    return inputs


def cluster_of_context_files(chosen: Settings, policies: PolicySet) -> FilesCluster:
    """Return the view of the cluster in context folders and files. Raises as `read_context_documents`."""
    inputs = read_context_documents(chosen, policies)
    held = (yamlfile.Document(each.value, each.source) for each in inputs.documents)
    return FilesCluster(held, is_whole=chosen.context_is_whole and not inputs.templates)


def check_rule_names_in_params(rules: ParamRuleChecker, inputs: documents.InputDocuments) -> tuple[InputProblem, ...]:
    """Return the problems of params that name rules that do not exist."""
    return tuple(
        each.document.problem((*each.path, *at), text)
        for each in inputs.documents
        for at, text in rules.mistakes_if_object_is_param(each.value)
    )
