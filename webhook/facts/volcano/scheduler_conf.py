"""What Volcano's scheduler refuses of its configuration, and what it reads without a word and does not do.

The configuration stands in a ConfigMap, under a key such as volcano-scheduler.conf. The scheduler reads it loosely: a
key that is misspelt is dropped, a plugin that it does not know is logged, and with an action that it does not know it
goes on with the configuration before. Further plugins come from the folder of --plugins-dir, named as their files are:
a name that resembles none of Volcano's is taken for one of them. Source: volcano-sh/volcano@ed72c7c815a9
pkg/scheduler/util.go UnmarshalSchedulerConf, conf/scheduler_conf.go, plugins/factory.go, actions/factory.go,
framework/plugins.go LoadCustomPlugins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook import yamlfile
from webhook.attributes import JSON
from webhook.errors import InputError
from webhook.facts.check import Group
from webhook.facts.subject import Subject
from webhook.facts.values import items, mapping, text
from webhook.paths import FieldPath, render
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.similar_names import nearest
from webhook.wording import did_you_mean, either

problem: Final = Group("volcano-scheduler").problem
ACTIONS: Final = ("enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle")
PLUGINS: Final = (
    "binpack",
    "capacity",
    "cdp",
    "conformance",
    "deviceshare",
    "drf",
    "extender",
    "gang",
    "network-topology-aware",
    "nodegroup",
    "nodeorder",
    "numa-aware",
    "overcommit",
    "pdb",
    "predicates",
    "priority",
    "proportion",
    "rescheduling",
    "resource-strategy-fit",
    "resourcequota",
    "sla",
    "task-topology",
    "tdm",
    "usage",
)
_VICTIMS: Final[Mapping[str, tuple[str, ...]]] = {
    "preempt": ("priority", "gang", "conformance", "drf", "cdp", "extender", "pdb", "tdm"),
    "reclaim": ("proportion", "capacity", "drf", "extender"),
    "gangpreempt": ("gang", "priority", "capacity", "conformance"),
    "gangreclaim": ("gang", "capacity", "conformance"),
    "shuffle": ("rescheduling", "tdm", "pdb"),
}
"""The plugins of which an action needs one, which name pods that may go."""
_KEYS: Final = ("actions", "tiers", "configurations", "metrics")
_OPTION_KEYS: Final = (
    "name",
    "arguments",
    "enableJobOrder",
    "enableHierarchy",
    "enableJobReady",
    "enableJobPipelined",
    "enableTaskOrder",
    "enablePreemptable",
    "enableReclaimable",
    "enablePreemptive",
    "enableQueueOrder",
    "enabledClusterOrder",
    "enablePredicate",
    "enableBestNode",
    "enableNodeOrder",
    "enableTargetJob",
    "enableReservedNodes",
    "enableJobEnqueued",
    "enabledVictim",
    "enableJobStarving",
    "enabledOverused",
    "enabledAllocatable",
    "enabledHyperNodeOrder",
    "enabledSubJobReady",
    "enabledSubJobPipelined",
    "enabledSubJobOrder",
    "enabledHyperNodeGradient",
)
_FIRST: Final = (
    ("enqueue", "allocate"),
    ("allocate", "backfill"),
    ("allocate", "preempt"),
    ("allocate", "gangpreempt"),
)
"""Pairs of actions of which the first should come first."""
_OUT_OF_ORDER: Final[Mapping[str, str]] = {
    "allocate": "so allocate works only with jobs that enqueue admitted in the previous cycle",
    "backfill": "but backfill is for pods that request nothing, after allocate has placed the others",
    "preempt": "but preempt is for pods that allocate found no room for",
    "gangpreempt": "but gangpreempt is for pods that allocate found no room for",
}
_AGENT: Final = "agent-scheduler"
"""How the configuration of Volcano's other scheduler is named: installer/helm/chart/volcano/templates."""
_LONGEST: Final = 100_000
"""Characters of a configuration that are read; the longest that says something has some thousands."""


def scheduler_conf(subject: Subject) -> Iterator[Problem]:
    """Each key of a ConfigMap that holds a configuration of the scheduler.

    The agent scheduler reads one of the same form, but has plugins of its own and knows no gangs.
    """
    for key, written in subject.deadline.each(mapping(subject.object.get("data")).items()):
        if key.endswith(".conf") and not key.startswith(_AGENT) and _is_configuration(written):
            yield from _validate(written, ("data", key), subject)


def _is_configuration(written: JSON) -> bool:
    held = text(written)
    return len(held) <= _LONGEST and "actions:" in held and "tiers:" in held and not is_placeholder(held)


def _validate(written: str, at: FieldPath, subject: Subject) -> Iterator[Problem]:
    subject.deadline.look_ahead(len(written) * 1e-5)  # YAML takes about as long, and nothing interrupts it
    try:
        documents = yamlfile.load(written)
    except InputError as error:
        message = f"cannot be read as YAML: {error.problems[0].message}"
        yield problem("unreadable", at, message, "correct the YAML")
        return
    conf = documents[0].value if documents else None
    if not isinstance(conf, dict):
        yield problem(
            "unreadable", at, "must be an object with actions and tiers", "write an object with actions and tiers"
        )
        return
    plugins = [*_plugins(conf)]
    yield from _validate_keys(conf, _KEYS, "", at)
    names = {text(each.get("name")) for _, each in plugins}
    near = {name: nearest(name, PLUGINS) for name in names if name not in PLUGINS}
    yield from _validate_plugins(plugins, near, at)
    yield from _validate_tiers(conf, at)
    if not all(near.values()):
        names.update(PLUGINS)  # a plugin of somebody else may do what any of these does
    yield from _validate_missing(names, at)
    yield from _validate_actions(conf.get("actions"), names, at)


def _plugins(conf: Mapping[str, Any]) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    for tier, each in enumerate(items(conf.get("tiers"))):
        for index, option in enumerate(items(mapping(each).get("plugins"))):
            yield ("tiers", tier, "plugins", index), mapping(option)


def _validate_keys(value: Mapping[str, Any], known: Sequence[str], place: str, at: FieldPath) -> Iterator[Problem]:
    for name in value:
        if name not in known:
            where = f"{place}.{name}" if place else str(name)
            near = _same(str(name), known) or nearest(str(name), known)
            message = f"has the key `{where}`, which the scheduler ignores without a message"
            yield problem("key", at, message, did_you_mean(near, "remove the key"))


def _same(name: str, known: Sequence[str]) -> str:
    """The key that is spelt with another prefix: some begin with `enable`, others with `enabled`."""
    bare = name.removeprefix("enabled").removeprefix("enable").lower()
    return next((each for each in known if each.removeprefix("enabled").removeprefix("enable").lower() == bare), "")


def _validate_plugins(
    plugins: Sequence[tuple[FieldPath, Mapping[str, Any]]], near: Mapping[str, str], at: FieldPath
) -> Iterator[Problem]:
    """What is wrong with each plugin; `near` are unknown names with those of Volcano's that they resemble."""
    for place, option in plugins:
        name = text(option.get("name"))
        if near.get(name):
            message = (
                f"has the plugin `{name}`, which Volcano does not have, so the scheduler skips it unless --plugins-dir "
                f"has {name}.so"
            )
            yield problem("plugin", at, message, f"did you mean `{near[name]}`?")
        yield from _validate_keys(option, _OPTION_KEYS, render(place), at)
        for key, value in option.items():
            if key in _OPTION_KEYS[2:] and not isinstance(value, bool) and value is not None:
                message = f"has `{render((*place, key))}`, which must be true or false, so the scheduler cannot read it"
                yield problem("unreadable", at, message, "write true or false without quotes")


def _validate_tiers(conf: Mapping[str, Any], at: FieldPath) -> Iterator[Problem]:
    """Plugins that exclude each other."""
    every: set[str] = set()
    for tier in items(conf.get("tiers")):
        options = {text(mapping(each).get("name")): mapping(each) for each in items(mapping(tier).get("plugins"))}
        every.update(options)
        if "proportion" in options and options.get("drf", {}).get("enableHierarchy") is True:
            message = (
                "has proportion in the same tier as drf with enableHierarchy: true, so the scheduler "
                "refuses the configuration"
            )
            yield problem("plugins-conflict", at, message, "remove proportion, or remove enableHierarchy from drf")
    if {"proportion", "capacity"} <= every:
        message = "has both proportion and capacity, which divide the cluster among the queues in different ways"
        yield problem("plugins-together", at, message, "keep one of them")


def _validate_missing(plugins: set[str], at: FieldPath) -> Iterator[Problem]:
    if "gang" not in plugins:
        message = "does not have the plugin gang, so minAvailable of jobs has no effect"
        yield problem("plugin-missing", at, message, "add the plugin gang to tiers")
    if "predicates" not in plugins:
        message = "does not have the plugin predicates, so node selectors, taints and ports have no effect"
        yield problem("plugin-missing", at, message, "add the plugin predicates to tiers")


def _validate_actions(written: JSON, plugins: set[str], at: FieldPath) -> Iterator[Problem]:
    if not isinstance(written, str):
        message = "must have actions as one string with commas because the scheduler cannot read anything else"
        yield problem("unreadable", at, message, 'write actions: "enqueue, allocate, backfill"')
        return
    actions = [name.strip() for name in written.split(",")]
    for name in dict.fromkeys(actions):
        if name not in ACTIONS:
            near = nearest(name, ACTIONS)
            fix = did_you_mean(near, f"use one of {', '.join(ACTIONS)}")
            message = (
                f"has the action `{name}`, which does not exist, so the scheduler keeps its previous configuration"
            )
            yield problem("action", at, message, fix)
        elif name in _VICTIMS and plugins.isdisjoint(_VICTIMS[name]):
            wanted = either(_VICTIMS[name])
            message = f"has the action {name}, but none of the plugins that choose which pods {name} evicts"
            yield problem("action-plugin", at, message, f"add the plugin {wanted}, or remove the action")
    if "allocate" not in actions:
        yield problem(
            "action-missing",
            at,
            "does not have the action allocate, so nothing is scheduled",
            "add allocate to actions",
        )
    for first, second in _FIRST:
        if first in actions and second in actions and actions.index(first) > actions.index(second):
            message = f"lists the action {second} ahead of {first}, {_OUT_OF_ORDER[second]}"
            yield problem("action-order", at, message, f"put {first} ahead of {second}")
