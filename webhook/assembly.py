"""Loads what a command needs for reviews: policies, workload table, and the view of the cluster that flags name."""

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
    """Everything from which a policy set is compiled; unlike a policy set, it can be sent to another process.

    `unbound`: policies without a binding are also evaluated. The other fields are those of `Options`.
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
            InputError: every unknown rule that the configuration names.
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
    """The policies, the workload table and the objects for all reviews of a command.

    `options` are those of each review. `fills_defaults`: plain objects get the defaults of Kubernetes. Another process
    gets an assembly without compiled policies, and compiles the `sources` again.
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
    """Return the folders of policies: shipped and added ones, or only those of --only.

    Raises:
        ConfigurationError: the Kubernetes version lacks CEL features of the shipped policies.
    """
    if chosen.only:
        return chosen.only
    if chosen.kubernetes_version < shipped.SINCE:
        first_release = releases.release_as_text(shipped.SINCE)
        message = f"--kubernetes-version: the shipped policies use the CEL of Kubernetes {first_release} and later"
        raise ConfigurationError(f"{message}; name your own policies with --only, or leave out --kubernetes-version")
    shipped_folder = shipped.policies_folder()
    return (shipped_folder, *(each for each in chosen.policies if not _is_same_folder(each, shipped_folder)))


def _is_same_folder(folder: Path, other: Path) -> bool:
    # users of a checkout may name the folder of the shipped policies
    return folder.exists() and folder.samefile(other)


def load_policies_of_settings(chosen: Settings, options: Options) -> PolicySet:
    """Load the policies of the settings, with their configuration.

    Raises:
        PolicyError: every problem of the policies.
        InputError: every unknown rule that the configuration names.
        ConfigurationError: the Kubernetes version lacks CEL features of the shipped policies.
    """
    return apply_configuration_to_policies(
        load_policy_set(policy_folders_of_settings(chosen), options), chosen.configuration
    )


def describe_policy_sets_unless_default(chosen: Settings) -> str:
    """Return a line that names the sets of policies; "" without a configuration if only the shipped policies, or only
    those of --only, are used.
    """
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
    """Yield the exceptions and exemptions that end within some days, or have expired, with their places."""
    for path, each in file.value.time_limits:
        if each.days_left(day) <= notice_days:
            yield str(file.problem(path, describe_end(each, day)))


def assemble_policies_and_context(
    chosen: Settings, *, objects: Iterable[tuple[str, JSON]] = (), is_complete: bool = True
) -> ReviewAssembly:
    """Load policies and context.

    Args:
        chosen: the settings of the command.
        objects: what the command is about, each object with its file.
        is_complete: whether all files with these objects could be read.

    Raises:
        PolicyError: every problem of the policies.
        InputError: every problem of the workload tables, the context or the answers of the authorizer.
        ConfigurationError: an unknown rule in the settings, or a Kubernetes version that lacks CEL features of the
            shipped policies.
    """
    sources = read_policy_sources(chosen)
    return assembly_with_files(chosen, sources, sources.compile(), objects=objects, is_complete=is_complete)


def read_policy_sources(chosen: Settings) -> PolicySources:
    """Read the policies of the settings.

    Raises:
        PolicyError: a file or folder does not exist or cannot be listed.
        InputError: every problem of the workload tables.
        ConfigurationError: the Kubernetes version lacks CEL features of the shipped policies.
    """
    options = create_compile_options(chosen)
    return PolicySources(
        documents=read_policy_documents(policy_folders_of_settings(chosen)),
        engine=chosen.cel_engine,
        version=options.version,
        table=options.table,
        # the shipped policies certainly compile, and one review needs few policies
        lazy=not (chosen.policies or chosen.only),
        own_namespace=chosen.own_namespace,
        configuration=chosen.configuration,
        unbound=isinstance(chosen, ReviewSettings) and chosen.unbound,
    )


def review_options_of_settings(chosen: Settings, policies: PolicySet) -> ReviewOptions:
    """Return the options of each review: every field of `ReviewOptions` that is a setting.

    Raises:
        InputError: every problem of the answers of the authorizer.
        ConfigurationError: an unknown rule, group or policy in the settings.
    """
    converted: dict[str, Any] = {"authorizer": None}  # the server uses SubjectAccessReviews in place of a file
    if isinstance(chosen, ReviewSettings):
        for flag, names in (("--rule", chosen.rule), ("--skip", chosen.skip)):
            refuse_unknown_rules(flag, names, policies)
        converted = {
            "authorizer": None,
            "rules": frozenset(chosen.rule),
            "skip": frozenset(chosen.skip),
        }
        if chosen.authorizer is not None:
            from webhook.manifests.authorizer_answers import read_authorizer_file

            converted["authorizer"] = read_authorizer_file(chosen.authorizer)
    shared = {each.name for each in declared_settings(type(chosen))} & {field.name for field in fields(ReviewOptions)}
    return ReviewOptions(**{**{name: getattr(chosen, name) for name in shared}, **converted})


def assembly_with_files(
    chosen: Settings,
    sources: PolicySources,
    loaded: PolicySet,
    *,
    objects: Iterable[tuple[str, JSON]] = (),
    files: Iterable[str] = (),
    patches: Iterable[str] = (),
    is_complete: bool = True,
) -> ReviewAssembly:
    """Return loaded policies with the context of the settings.

    Args:
        chosen: the settings of the command.
        sources: the sources of the policies.
        loaded: the policies.
        objects: what the command is about, or what policies look up, each object with its file.
        files: all files with objects, if `objects` lacks some.
        patches: files with the name of a patch, beside a rendered kustomization that does not list the files.
        is_complete: whether all files could be read.

    Raises:
        InputError: every problem of the context or the answers of the authorizer.
        ConfigurationError: an unknown rule in the settings.
    """
    context = read_context_documents(chosen, loaded)
    tree = FileTree(
        objects,
        files=files,
        patches=patches,
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
    """Return the function that finds the patterns of `.claimgateignore` for a folder."""
    if chosen.no_config:
        return lambda _folder: ()
    copy = chosen.config_from
    return documents.ignore_patterns if copy is None else lambda folder: documents.ignore_patterns_of_copy(folder, copy)


def read_context_documents(chosen: Settings, policies: PolicySet) -> documents.InputDocuments:
    """Return the objects of context folders and files.

    Raises:
        InputError: something could not be read, or a param names an unknown rule.
    """
    inputs = documents.read_documents(chosen.context, patterns=ignore_patterns_finder(chosen))
    rules = ParamRuleChecker(policies.policies, policies.registry, own_namespace=policies.own_namespace)
    if problems := (*inputs.problems, *check_rule_names_in_params(rules, inputs.documents)):
        raise InputError(*problems)
    return inputs


def cluster_of_context_files(chosen: Settings, policies: PolicySet) -> FilesCluster:
    """Return the view of context folders and files; raises as `read_context_documents`."""
    inputs = read_context_documents(chosen, policies)
    documents = (yamlfile.Document(each.value, each.source) for each in inputs.documents)
    return FilesCluster(documents, is_whole=chosen.context_is_whole and not inputs.templates)


def check_rule_names_in_params(
    rules: ParamRuleChecker, listed: Iterable[documents.InputDocument]
) -> tuple[InputProblem, ...]:
    """Return the problems of params that name unknown rules."""
    return tuple(
        each.document.problem((*each.path, *at), text)
        for each in listed
        for at, text in rules.mistakes_if_object_is_param(each.value)
    )
