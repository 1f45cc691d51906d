"""Rules for the configuration of Volcano's scheduler: what it rejects, and what it silently ignores.

The configuration is in a ConfigMap, under a key such as volcano-scheduler.conf. The scheduler does not stop at
mistakes. It ignores a misspelt key and logs an unknown plugin. If an action is unknown, the scheduler continues with
the old configuration. The folder of --plugins-dir may have more plugins, named like their files. So a plugin with a
name unlike all names of Volcano's plugins may be in that folder. If a configuration has such a plugin, its unknown
plugins and actions are not reported.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/util.go UnmarshalSchedulerConf, conf/scheduler_conf.go,
plugins/factory.go, actions/factory.go, framework/plugins.go LoadCustomPlugins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.errors import InputError
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.facts.volcano.groups import VOLCANO_SCHEDULER
from webhook.rules.problem import Problem
from webhook.text.similar_names import nearest_name
from webhook.text.wording import did_you_mean, either
from webhook.typed.fields import Parts, Raw, Text, Truth, ValueMap
from webhook.typed.objects import ConfigMap
from webhook.typed.view import Typed
from webhook.yamltext import yamlfile
from webhook.yamltext.placeholders import is_placeholder

UNREADABLE: Final = VOLCANO_SCHEDULER.rule(
    "volcano-scheduler/unreadable",
    title="The scheduler configuration cannot be read",
    why="The configuration is YAML with actions as one string with commas, and options that are true or false.",
    function="UnmarshalSchedulerConf",
)
ACTION: Final = VOLCANO_SCHEDULER.rule(
    "volcano-scheduler/action",
    title="The scheduler action does not exist",
    why="If an action is unknown, the scheduler keeps its previous configuration.",
    function="UnmarshalSchedulerConf",
)
PLUGINS_CONFLICT: Final = VOLCANO_SCHEDULER.rule(
    "volcano-scheduler/plugins-conflict",
    title="The plugin proportion is in the same tier as drf with enableHierarchy",
    why="Both plugins then divide the cluster among the queues, so the scheduler refuses the configuration.",
    function="UnmarshalSchedulerConf",
)
PLUGIN: Final = VOLCANO_SCHEDULER.rule(
    "volcano-scheduler/plugin",
    title="The scheduler plugin does not exist",
    why="The scheduler skips the plugin, and reports this only in its log.",
    refused_by="nothing; the plugin is left out",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/framework/framework.go",
)
KEY: Final = VOLCANO_SCHEDULER.rule(
    "volcano-scheduler/key",
    title="The scheduler ignores this key",
    why="The scheduler drops unknown keys without a message. Most options begin with enable, some with enabled.",
    refused_by="nothing; the key has no effect",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/conf/scheduler_conf.go",
)
ACTION_PLUGIN: Final = VOLCANO_SCHEDULER.rule(
    "volcano-scheduler/action-plugin",
    title="The action has no effect without its plugin",
    why="Plugins choose the pods to evict. Without such a plugin, preempt, reclaim and shuffle evict nothing.",
    refused_by="nothing; the action does nothing",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins",
)
ACTION_MISSING: Final = VOLCANO_SCHEDULER.rule(
    "volcano-scheduler/action-missing",
    title="The scheduler has no action allocate",
    why="Without the action allocate, no pod is ever placed.",
    refused_by="nothing; nothing is scheduled",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/actions",
    fails="pending",
)
ACTION_ORDER: Final = VOLCANO_SCHEDULER.rule(
    "volcano-scheduler/action-order",
    title="The scheduler actions are in the wrong order",
    why=(
        "enqueue admits jobs, allocate places their pods, and backfill and preempt are for the pods that remain. So "
        "the actions must run in this order."
    ),
    refused_by="nothing; pods wait a cycle longer",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/scheduler.go",
    function="runOnce",
)
PLUGINS_TOGETHER: Final = VOLCANO_SCHEDULER.rule(
    "volcano-scheduler/plugins-together",
    title="The plugins proportion and capacity are both on",
    why=(
        "proportion divides the cluster by the weight of the queues, and capacity by their `deserved`. With both, the "
        "queues get other shares than either setting says."
    ),
    refused_by="nothing; both plugins decide",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins",
)
PLUGIN_MISSING: Final = VOLCANO_SCHEDULER.rule(
    "volcano-scheduler/plugin-missing",
    title="The scheduler lacks the plugin gang or predicates",
    why="Without gang, the scheduler ignores minAvailable. Without predicates, nodes may refuse the pods.",
    refused_by="nothing; pods are placed on wrong nodes",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/scheduler/plugins",
)

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
"""For each action, the plugins that can choose the pods to evict. The action needs one of these plugins."""
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
_FORMER_KEYS: Final = ("enableNamespaceOrder", "EnabledClusterOrder")
"""Keys of an option that older releases of Volcano read (pkg/scheduler/conf/scheduler_conf.go of release-1.8)."""
_ORDERED_PAIRS: Final = (
    ("enqueue", "allocate"),
    ("allocate", "backfill"),
    ("allocate", "preempt"),
    ("allocate", "gangpreempt"),
)
"""Pairs of actions. The first action of a pair should run before the second."""
_OUT_OF_ORDER: Final[Mapping[str, str]] = {
    "allocate": "so allocate works only with jobs that enqueue admitted in the previous cycle",
    "backfill": "but backfill places pods that request nothing, and must run after allocate",
    "preempt": "but preempt is for pods that allocate found no room for",
    "gangpreempt": "but gangpreempt is for pods that allocate found no room for",
}
_OTHER_SCHEDULERS: Final = ("agent-scheduler", "kube-batch")
"""The beginnings of the names of configurations for other schedulers.

agent-scheduler is also part of Volcano (installer/helm/chart/volcano/templates). kube-batch, from which Volcano was
made, has other keys, such as disableJobOrder, and fewer actions and plugins.
"""
_CAPACITY: Final = "capacity"
_SECONDS_A_CHARACTER: Final = 1e-5
"""Seconds to parse a character of YAML."""
_LONGEST: Final = 100_000
"""Longer configurations are not read. Real configurations have at most some thousand characters."""


class ConfigMapOfAnyValues(Typed):
    """A ConfigMap with values of any type."""

    data = ValueMap()


class PluginOption(Typed):
    """One plugin of a tier with its options."""

    name = Text()
    enable_hierarchy = Truth()


class PluginTier(Typed):
    """Plugins that are called before the plugins of the next tier."""

    plugins = Parts(PluginOption)


class SchedulerConfiguration(Typed):
    """The configuration file of Volcano's scheduler."""

    actions = Raw()
    tiers = Parts(PluginTier)

    def plugin_options(self) -> Iterator[PluginOption]:
        """Yield the options of the plugins of all tiers."""
        for tier in self.tiers:
            yield from tier.plugins


def counts_parents(view: ClusterView) -> bool | None:
    """Return whether the scheduler counts the parents of queues, which only the plugin capacity with enableHierarchy
    does; None if no file has the configuration. A live view has no ConfigMaps.
    """
    return view.once(counts_parents, lambda: _counts_parents(view))


def _counts_parents(view: ClusterView) -> bool | None:
    """Return the answer of all configurations in files; None without a configuration, or if the answers differ."""
    answers = set[bool]()
    for config_map in view.copy_without_missing_objects().list_typed(ConfigMap):
        for text in (text for key, text in config_map.data.items() if _is_configuration_key(key)):
            if not _is_configuration(text):
                continue
            view.deadline.require_time_for_call(len(text) * _SECONDS_A_CHARACTER)
            try:
                documents = yamlfile.load(text)
            except InputError:
                return None
            conf = SchedulerConfiguration.of(documents[0].value if documents else None, (), config_map.reading)
            options = [each for each in conf.plugin_options() if each.name == _CAPACITY]
            answers.add(bool(options) and options[0].enable_hierarchy)
    return answers.pop() if len(answers) == 1 else None


def check_scheduler_conf(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of scheduler configurations in a ConfigMap.

    The configurations of the agent scheduler and of kube-batch are skipped, because both have other plugins.
    """
    config_map = subject.typed(ConfigMap)
    for key, text in config_map.data.items():
        if _is_configuration_key(key) and _is_configuration(text):
            yield from _validate_configuration_text(text, config_map.path("data", key), config_map)


def may_be_scheduler_conf(config_map: JSON) -> bool:
    """Return whether a ConfigMap has a key for a scheduler configuration. The values may have any type."""
    return any(map(_is_configuration_key, ConfigMapOfAnyValues.of(config_map).data))


def _is_configuration_key(key: str) -> bool:
    return key.endswith(".conf") and not key.startswith(_OTHER_SCHEDULERS)


def _is_configuration(text: str) -> bool:
    return len(text) <= _LONGEST and "actions:" in text and "tiers:" in text and not is_placeholder(text)


def _validate_configuration_text(text: str, at: FieldPath, config_map: ConfigMap) -> Iterator[Problem]:
    config_map.reading.deadline.require_time_for_call(
        len(text) * _SECONDS_A_CHARACTER
    )  # parsing YAML needs about this time, and cannot be interrupted
    try:
        documents = yamlfile.load(text)
    except InputError as error:
        yield _unreadable_problem(f"cannot be read as YAML: {error.problems[0].message}", "correct the YAML", at)
        return
    conf = SchedulerConfiguration.of(documents[0].value if documents else None, (), config_map.reading)
    if conf:
        yield from _validate_configuration(conf, at)
    else:
        yield _unreadable_problem(
            "must be an object with actions and tiers", "write an object with actions and tiers", at
        )


def _unreadable_problem(message: str, fix: str, at: FieldPath) -> Problem:
    return UNREADABLE.problem(at, message, fix)


def _validate_configuration(conf: SchedulerConfiguration, at: FieldPath) -> Iterator[Problem]:
    yield from _check_unknown_keys(conf, _KEYS, at)
    plugins = {option.name for option in conf.plugin_options()}
    near = {name: _probably_meant_plugin(name) for name in plugins if name not in PLUGINS}
    has_other_plugins = not all(near.values())  # an unknown plugin may do what any plugin of Volcano does
    for option in conf.plugin_options():
        yield from _check_misspelled_plugin(option.name, "" if has_other_plugins else near.get(option.name, ""), at)
        yield from _check_unknown_keys(option, _OPTION_KEYS, at, former=_FORMER_KEYS)
        yield from _check_booleans_of_option(option, at)
    yield from _check_plugins_conflict(conf, at)
    yield from _check_proportion_with_capacity(plugins, at)
    if has_other_plugins:
        plugins.update(PLUGINS)
    yield from _check_plugin_missing(plugins, at)
    yield from _validate_actions(conf, plugins, at, has_other_plugins=has_other_plugins)


def _probably_meant_plugin(name: str) -> str:
    """Return the plugin that a misspelt name means; "" if no plugin has a similar name.

    A name that adds two or more characters to the name of a plugin is not misspelt, such as `proportionpf`.
    """
    near = nearest_name(name, PLUGINS)
    return "" if near and near in name and len(name) > len(near) + 1 else near


def _check_unknown_keys(
    part: Typed, keys: Sequence[str], at: FieldPath, former: Sequence[str] = ()
) -> Iterator[Problem]:
    """Report keys that the scheduler does not read, except keys that older releases read."""
    for key in map(str, part.json):
        if key not in keys and key not in former:
            near = _key_with_other_prefix(key, keys) or nearest_name(key, keys)
            where = f"{path_as_text(part.at)}.{key}" if part.at else key
            message = f"has the key `{where}`, which the scheduler ignores without a message"
            yield KEY.problem(at, message, did_you_mean(near, "remove the key"))


def _key_with_other_prefix(key: str, keys: Sequence[str]) -> str:
    """Return the known key with the other prefix, `enable` or `enabled`; "" if there is none."""
    bare = _key_without_enable(key)
    return next((other for other in keys if _key_without_enable(other) == bare), "")


def _key_without_enable(key: str) -> str:
    return key.removeprefix("enabled").removeprefix("enable").lower()


def _check_misspelled_plugin(name: str, near: str, at: FieldPath) -> Iterator[Problem]:
    """Report a plugin with a name similar to a plugin of Volcano."""
    if near:
        message = (
            f"has the plugin `{name}`, which Volcano does not have, so the scheduler skips it unless --plugins-dir has "
            f"{name}.so"
        )
        yield PLUGIN.problem(at, message, f"did you mean `{near}`?")


def _check_booleans_of_option(option: PluginOption, at: FieldPath) -> Iterator[Problem]:
    for key, value in option.json.items():
        if key in _OPTION_KEYS[2:] and not isinstance(value, bool | None):
            place = path_as_text(option.path(key))
            message = f"has `{place}`, which must be true or false, so the scheduler cannot read the configuration"
            yield _unreadable_problem(message, "write true or false without quotes", at)


def _check_plugins_conflict(conf: SchedulerConfiguration, at: FieldPath) -> Iterator[Problem]:
    for tier in conf.tiers:
        options = {option.name: option for option in tier.plugins}
        if "proportion" in options and "drf" in options and options["drf"].enable_hierarchy:
            message = (
                "has proportion in the same tier as drf with enableHierarchy: true, so the scheduler refuses the "
                "configuration"
            )
            yield PLUGINS_CONFLICT.problem(at, message, "remove proportion, or remove enableHierarchy from drf")


def _check_proportion_with_capacity(plugins: set[str], at: FieldPath) -> Iterator[Problem]:
    if {"proportion", "capacity"} <= plugins:
        message = "has both proportion and capacity, which divide the cluster among the queues in different ways"
        fix = "keep proportion if the queues have only a weight, or capacity if they have `deserved`"
        yield PLUGINS_TOGETHER.problem(at, message, fix)


_EFFECTS_OF_PLUGINS: Final = {
    "gang": "minAvailable of jobs",
    "predicates": "node selectors, taints and ports",
}
"""The settings that have no effect without a plugin, by the plugin."""


def _check_plugin_missing(plugins: set[str], at: FieldPath) -> Iterator[Problem]:
    missing = [name for name in _EFFECTS_OF_PLUGINS if name not in plugins]
    if missing:
        names = f"plugin{'s' if missing[1:] else ''} {' and '.join(missing)}"
        effects = " and ".join(_EFFECTS_OF_PLUGINS[name] for name in missing)
        has = "has" if missing == ["gang"] else "have"
        message = f"does not have the {names}, so {effects} {has} no effect"
        yield PLUGIN_MISSING.problem(at, message, f"add the {names} to tiers")


def _validate_actions(
    conf: SchedulerConfiguration, plugins: set[str], at: FieldPath, *, has_other_plugins: bool
) -> Iterator[Problem]:
    """Report actions that the scheduler does not know or that need a missing plugin, and actions in a wrong order."""
    if not isinstance(conf.actions, str):
        message = "must have actions as one string with commas because the scheduler cannot read anything else"
        yield _unreadable_problem(message, 'write actions: "enqueue, allocate, backfill"', at)
        return
    actions = [name.strip() for name in conf.actions.split(",")]
    for name in dict.fromkeys(actions):
        if not has_other_plugins:
            yield from _check_action_exists(name, at)
        yield from _check_action_plugin(name, plugins, at)
    yield from _check_action_missing(actions, at)
    yield from _check_action_order(actions, at)


def _check_action_exists(name: str, at: FieldPath) -> Iterator[Problem]:
    if name not in ACTIONS:
        fix = did_you_mean(nearest_name(name, ACTIONS), f"use one of {', '.join(ACTIONS)}")
        message = f"has the action `{name}`, which does not exist, so the scheduler keeps its previous configuration"
        yield ACTION.problem(at, message, fix)


def _check_action_plugin(name: str, plugins: set[str], at: FieldPath) -> Iterator[Problem]:
    if name in _VICTIMS and plugins.isdisjoint(_VICTIMS[name]):
        message = f"has the action {name}, but no plugin that chooses which pods {name} evicts"
        yield ACTION_PLUGIN.problem(at, message, f"add the plugin {either(_VICTIMS[name])}, or remove the action")


def _check_action_missing(actions: Sequence[str], at: FieldPath) -> Iterator[Problem]:
    if "allocate" not in actions:
        message = "does not have the action allocate, so nothing is scheduled"
        yield ACTION_MISSING.problem(at, message, "add allocate to actions")


def _check_action_order(actions: Sequence[str], at: FieldPath) -> Iterator[Problem]:
    for first, second in _ORDERED_PAIRS:
        if first in actions and second in actions and actions.index(first) > actions.index(second):
            message = f"lists the action {second} ahead of {first}, {_OUT_OF_ORDER[second]}"
            yield ACTION_ORDER.problem(at, message, f"put {first} ahead of {second}")
