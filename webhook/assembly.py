"""What a command evaluates with: the policies, the workload table and the view of the cluster that flags name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from webhook import documents, releases, shipped
from webhook.attributes import JSON
from webhook.cluster import Cluster
from webhook.cluster.assumed_namespaces import AssumedNamespaces
from webhook.cluster.files import FilesCluster
from webhook.errors import ConfigurationError, InputError, Problem
from webhook.policy.load import Options, load
from webhook.policy.param_rules import ParamRules
from webhook.policy.policy_set import PolicySet
from webhook.policy.unbound import bound
from webhook.settings.shared import Settings
from webhook.workloads import table


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What every review of one command is answered with."""

    policies: PolicySet
    table: table.Table
    cluster: Cluster


def options(chosen: Settings) -> Options:
    """How policies are compiled.

    Raises:
        InputError: every problem of the workload tables.
    """
    return Options(engine=chosen.cel_engine, version=chosen.kubernetes_version, table=table.load(chosen.workloads))


def places(chosen: Settings) -> tuple[Path, ...]:
    """The policies that are named, or the shipped ones.

    Raises:
        ConfigurationError: the shipped ones are wanted for a version whose CEL they go beyond.
    """
    if chosen.policies:
        return chosen.policies
    if chosen.kubernetes_version < shipped.SINCE:
        least = releases.shown(shipped.SINCE)
        told = f"--kubernetes-version: the shipped policies use the CEL of Kubernetes {least} and later"
        raise ConfigurationError(f"{told}; name your own policies with --policies, or leave out --kubernetes-version")
    return (shipped.policies(),)


def assemble(chosen: Settings, *, context: Iterable[JSON] = (), unbound: bool = False) -> Assembly:
    """Load policies (the shipped ones when none are named) and context.

    Args:
        chosen: the settings of the command.
        context: further objects that the cluster holds; those of the settings' context win.
        unbound: policies without a binding are evaluated, too.

    Raises:
        PolicyError: every problem of the policies.
        InputError: every problem of the workload tables or the context.
    """
    how = options(chosen)
    # the shipped policies are known to compile: of 30 of them, one review asks a few
    loaded = load(places(chosen), replace(how, lazy=not chosen.policies))
    loaded = bound(loaded) if unbound else loaded
    held = [*context_objects(chosen.context, loaded), *context]
    return Assembly(policies=loaded, table=how.table, cluster=AssumedNamespaces(FilesCluster(held)))


def objects(named: Sequence[Path]) -> tuple[JSON, ...]:
    """The objects of files and folders.

    Raises:
        InputError: something could not be read.
    """
    inputs = documents.read(named)
    if inputs.problems:
        raise InputError(*inputs.problems)
    return tuple(each.value for each in inputs.documents)


def context_objects(named: Sequence[Path], policies: PolicySet) -> tuple[JSON, ...]:
    """The objects of context folders and files.

    Raises:
        InputError: something could not be read, or a param of the policies names a rule that does not exist.
    """
    inputs = documents.read(named)
    if problems := (*inputs.problems, *param_problems(policies, inputs)):
        raise InputError(*problems)
    return tuple(each.value for each in inputs.documents)


def param_problems(policies: PolicySet, inputs: documents.Inputs) -> tuple[Problem, ...]:
    """What is wrong with those of some objects that are params of the policies: rules that do not exist."""
    rules = ParamRules(policies.validating, policies.registry)
    return tuple(
        each.document.problem((*each.path, *at), text)
        for each in inputs.documents
        for at, text in rules.mistakes(each.value)
    )
