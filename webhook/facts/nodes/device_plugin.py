"""The configuration and the release of NVIDIA's device plugin, node labels that name an absent configuration, and
configurations that the plugin refuses.

A label of a node names a key of a ConfigMap: the configuration of the plugin on this node. The ConfigMap is the volume
of the config-manager, or a ClusterPolicy names the ConfigMap. Another label names the MIG profile of the node. From
release 26.3 of the GPU operator on, the MIG manager derives the profiles from the hardware unless a ClusterPolicy names
a ConfigMap. So a profile is reported only if a certain ConfigMap lacks the profile: the ConfigMap that a ClusterPolicy
names, or the default ConfigMap of an older operator.

Source: NVIDIA/k8s-device-plugin@1b826acc6 api/config/v1 and cmd/config-manager/main.go; NVIDIA/gpu-operator@a22dbf671
values.yaml for the releases of the operator, and assets/state-mig-manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath
from typing import Final

from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import FieldPath
from webhook.apimachinery.releases import Release, parse_release
from webhook.cluster.interest import interest_in_fields
from webhook.errors import InputError
from webhook.facts.nodes.node_offers import NodeOffer, images_of_deployments
from webhook.facts.nodes.types import DEVICE_PLUGIN, ClusterPolicy, PluginConfiguration, SharingSettings
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.text.wording import counted, either
from webhook.typed.cluster_objects import DaemonSet, Node
from webhook.typed.collections import Items
from webhook.typed.objects import ConfigMap
from webhook.typed.pods import Container
from webhook.typed.view import ReadingContext
from webhook.yamltext import yamlfile
from webhook.yamltext.placeholders import is_placeholder

CONFIG: Final = DEVICE_PLUGIN.rule(
    "device-plugin/config",
    title="A configuration of the device plugin does not exist",
    why="The config-manager exits with an error, so the plugin keeps its old configuration or offers no GPUs.",
    source="NVIDIA/k8s-device-plugin cmd/config-manager/main.go",
    function="updateConfigName",
)
MAY_LACK_CONFIG: Final = DEVICE_PLUGIN.rule(
    "device-plugin/config-may-not-exist",
    title="A configuration of the device plugin may not exist",
    why="No DaemonSet and no ClusterPolicy is known that names the ConfigMap, so the plugin may read another one.",
    source="NVIDIA/k8s-device-plugin cmd/config-manager/main.go",
    function="updateConfigName",
    level="advice",
)
MIG_CONFIG: Final = DEVICE_PLUGIN.rule(
    "device-plugin/mig-config",
    title="A node names a MIG configuration that does not exist",
    why="The MIG manager sets nvidia.com/mig.config.state to failed and divides no GPU.",
    source="NVIDIA/gpu-operator@a22dbf671 assets/state-mig-manager",
)
KUBELET_SOCKET: Final = DEVICE_PLUGIN.rule(
    "device-plugin/kubelet-socket",
    title="The device plugin cannot reach the kubelet",
    why=(
        "A device plugin registers at a socket of the kubelet in /var/lib/kubelet/device-plugins. Without this folder "
        "the node offers no GPUs."
    ),
    source="https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/",
)
SHARING: Final = DEVICE_PLUGIN.rule(
    "device-plugin/sharing",
    title="The device plugin cannot read how to share GPUs",
    why=(
        "Each shared resource needs a name and at least 2 replicas. NVIDIA's device plugin refuses another "
        "configuration and exits, so the node offers no GPUs."
    ),
    refused_by="NVIDIA's device plugin, when it starts",
    source="NVIDIA/k8s-device-plugin@1b826acc6 api/config/v1/replicas.go",
    function="UnmarshalJSON",
)
CONFIG_LABEL: Final = "nvidia.com/device-plugin.config"
MPS_RELAXED: Final[Release] = (0, 20)
"""The first release of the device plugin that honours `failRequestsGreaterThanOne: false` for MPS."""
PLUGIN_LOOKUPS: Final = (
    interest_in_fields(DaemonSet.gvk, "spec.template"),
    interest_in_fields(ClusterPolicy.gvk, "spec.devicePlugin.config", "spec.migManager.config"),
)
"""The look-ups of audits. Only files show which ConfigMap a plugin reads."""
_SOURCE: Final = "CONFIG_FILE_SRCDIR"
_DEFAULT: Final = "DEFAULT_CONFIG"
"""The variables of the config-manager with the folder of its ConfigMap, and with the configuration of other nodes."""
_FEWEST_REPLICAS: Final = 2
_GPU: Final = "nvidia.com/gpu"
_IMAGE: Final = "k8s-device-plugin"
"""The image of the plugins of NVIDIA and AMD. NVIDIA's image also has programs that do not talk to the kubelet."""
_LABELLER: Final = "labeller"
"""The beginning of tags of AMD's image with a program that only labels nodes, such as `labeller-latest`."""
_PLUGIN: Final = "device-plugin"
_KUBELET: Final = PurePosixPath("/var/lib/kubelet/device-plugins")
_OPERATOR: Final = "gpu-operator"
_OF_OPERATOR: Final[Mapping[Release, Release]] = {
    (24, 9): (0, 17),
    (25, 3): (0, 17),
    (25, 10): (0, 18),
    (26, 3): (0, 19),
    (26, 7): (0, 20),
}
_SECONDS_A_CHARACTER: Final = 1e-5
"""Seconds to parse a character of YAML."""
_MIG_LABEL: Final = "nvidia.com/mig.config"
_MIG_KEY: Final = "config.yaml"
_DEFAULT_PROFILES: Final = "default-mig-parted-config"
_GENERATED_SINCE: Final[Release] = (26, 3)
"""The first release of the GPU operator with a MIG manager that derives the profiles from the hardware."""
_VERSION: Final = "version: v1"
_CONFIGURATION_KEYS: Final = frozenset(("sharing", "flags", "resources"))
"""A configuration of the device plugin has at least one of these keys."""


def plugin_release(view: ClusterView) -> Release | None:
    """Return the release of the device plugin, from the image of its DaemonSet or of the GPU operator; None if the
    release is not known.
    """
    return view.once(plugin_release, lambda: _plugin_release(view))


def _plugin_release(view: ClusterView) -> Release | None:
    releases = {*_releases_of_images(_IMAGE, _images_of_daemon_sets(view))}
    if not releases:
        releases = {
            _OF_OPERATOR.get(each) for each in _releases_of_images(_OPERATOR, images_of_deployments(view)) if each
        }
    return next(iter(releases)) if len(releases) == 1 else None


def _releases_of_images(image: str, images: Iterable[str]) -> Iterator[Release | None]:
    """Yield the releases in the tags of an image, in any registry."""
    for each in images:
        name = parse_image_name(each)
        if name.tag and name.last_part == image:
            yield parse_release(name.tag)


def check_kubelet_socket(subject: Subject) -> Iterator[Problem]:
    """Report a container of a DaemonSet with a device plugin and without the folder of the kubelet's socket."""
    for container in subject.typed(DaemonSet).spec.template.spec.containers:
        program, image = [*container.command, _PLUGIN][0], parse_image_name(container.image)
        if (
            image.last_part != _IMAGE
            or image.tag.startswith(_LABELLER)
            or not program.endswith(_PLUGIN)
            or container.is_omitted("volumeMounts")
        ):
            continue
        paths = [mount.mount_path for mount in container.volume_mounts]
        if not any(is_placeholder(path) or (path and _KUBELET.is_relative_to(path)) for path in paths):
            message = f"does not mount {_KUBELET}, so the plugin cannot register and the node offers no devices"
            fix = f"mount a hostPath volume with {_KUBELET} at the same path"
            yield KUBELET_SOCKET.problem(container.path("volumeMounts"), message, fix)


def check_sharing(subject: Subject) -> Iterator[Problem]:
    """Report the first mistake in each configuration of a ConfigMap that shares GPUs."""
    config_map, view = subject.typed(ConfigMap), subject.cluster_view()
    for key, text in config_map.data.items():
        if "sharing:" not in text or is_placeholder(text):
            continue
        configuration = parse_configuration(text, view)
        if configuration is None:
            continue
        sharing = configuration.sharing
        for strategy, settings in (("timeSlicing", sharing.time_slicing), ("mps", sharing.mps)):
            if sharing.has(strategy) and (mistake := _mistake_in_sharing(settings)):
                message = f"sharing.{strategy}{mistake[0]}, so the device plugin refuses the configuration"
                yield SHARING.problem(config_map.path("data", key), message, mistake[1])
                break


def _mistake_in_sharing(settings: SharingSettings) -> tuple[str, str] | None:
    """Return the first mistake in the shared resources, and the fix; None without a mistake."""
    if not settings.resources:
        return " has no resources", f"add resources with name: {_GPU} and replicas"
    for number, each in enumerate(settings.resources):
        at = f".resources[{number}]"
        if "name" not in each.json:
            return f"{at} has no name", f"set name: {_GPU}"
        if "replicas" not in each.json:
            return f"{at} has no replicas", f"set replicas to {_FEWEST_REPLICAS} or more"
        if each.replicas is not None and each.replicas < _FEWEST_REPLICAS:
            fix = f"set replicas to {_FEWEST_REPLICAS} or more, or remove the entry"
            return f"{at} has {counted(each.replicas, 'replica')}, and needs at least {_FEWEST_REPLICAS}", fix
    return None


def _images_of_daemon_sets(view: ClusterView) -> Iterator[str]:
    for each in view.copy_without_missing_objects().list_typed(DaemonSet):
        yield from (container.image for container in each.spec.template.spec.containers)


def plugin_configuration(offer: NodeOffer, view: ClusterView) -> PluginConfiguration | None:
    """Return the configuration of the plugin on a node; None if the configuration is not known."""
    name = offer.labels.get(CONFIG_LABEL, "")
    texts = [each.data[name] for each in all_config_maps(view) if name in each.data] if name else []
    return parse_configuration(texts[0], view) if len(texts) == 1 else None


def shares_of_device(resource: str, view: ClusterView) -> int:
    """Return how many devices the plugin may offer for each device of a resource; 1 if no configuration shares the
    resource. The source is the plugin's configurations in files.
    """
    texts = (text for each in all_config_maps(view) for text in each.data.values())
    known = (parse_configuration(text, view) for text in texts if "sharing:" in text and not is_placeholder(text))
    return max(
        (
            each.replicas or 1
            for configuration in known
            if configuration is not None
            for settings in (configuration.sharing.time_slicing, configuration.sharing.mps)
            for each in settings.resources
            if each.name == resource
        ),
        default=1,
    )


def all_config_maps(view: ClusterView) -> Items[ConfigMap]:
    """Return the ConfigMaps of all namespaces in files; a live view has no ConfigMaps."""
    return view.once(all_config_maps, lambda: view.copy_without_missing_objects().list_typed(ConfigMap))


def parse_configuration(text: str, view: ClusterView) -> PluginConfiguration | None:
    """Return a configuration that is written in YAML; None if the text is not one document in YAML."""
    view.deadline.require_time_for_call(len(text) * _SECONDS_A_CHARACTER)
    try:
        documents = yamlfile.load(text)
    except InputError:
        return None
    if len(documents) != 1:
        return None
    return PluginConfiguration.of(documents[0].value, (), ReadingContext(view.deadline))


def check_node_labels(subject: Subject) -> Iterator[Problem]:
    """Report labels of a Node that name a configuration that does not exist."""
    node, view = subject.typed(Node), subject.cluster_view()
    if view.is_whole() and (name := node.metadata.labels.get(CONFIG_LABEL, "")):
        yield from _check_plugin_config(node, name, view)
    if name := node.metadata.labels.get(_MIG_LABEL, ""):
        yield from _check_mig_config(node, name, view)


def _check_plugin_config(node: Node, name: str, view: ClusterView) -> Iterator[Problem]:
    """Report a name that is not a key of the ConfigMap with configurations of the plugin."""
    config_map, is_named = view.once(_config_map_of_plugin, lambda: _config_map_of_plugin(view))
    if config_map is not None:
        at = node.metadata.path("labels", CONFIG_LABEL)
        yield from _check_key(at, name, config_map, "is ", is_named=is_named)


def check_default_configuration(subject: Subject) -> Iterator[Problem]:
    """Report the configuration for nodes without a label, if the ConfigMap has no such key.

    A ClusterPolicy, or a DaemonSet with the config-manager, names the configuration and the ConfigMap.
    """
    if subject.group_kind == (ClusterPolicy.gvk.group, ClusterPolicy.gvk.kind):
        config = subject.typed(ClusterPolicy).spec.device_plugin.config
        yield from _check_default(config.path("default"), config.default, ("", config.name), subject)
        return
    for container, named in _config_managers(subject.typed(DaemonSet)):
        default = container.environment.by_name().get(_DEFAULT) or ""
        yield from _check_default(container.path("env"), default, named, subject)
        return  # an init container and a sidecar have the same variables


def _check_default(path: FieldPath, default: str, named: tuple[str, str], subject: Subject) -> Iterator[Problem]:
    config_maps = _config_maps_of_names(subject.cluster_view(), {named})
    if default and len(config_maps) == 1:
        yield from _check_key(path, default, config_maps[0], "is the configuration of nodes without a label, but is ")


def _check_key(
    path: FieldPath, name: str, config_map: ConfigMap, verb: str, *, is_named: bool = True
) -> Iterator[Problem]:
    """Report a name that is not a key of a ConfigMap."""
    if config_map.data and name not in config_map.data and not is_placeholder(name):
        only = "" if is_named else ", the only known one for the device plugin"
        message = f"{verb}not a key of ConfigMap `{config_map.name}`{only}, which has {either(config_map.data)}"
        fix = "name one of these keys, or add the key"
        if is_named:
            yield CONFIG.problem(path, message, fix, name)
        else:
            yield MAY_LACK_CONFIG.problem(path, message, fix, name)


def _config_map_of_plugin(view: ClusterView) -> tuple[ConfigMap | None, bool]:
    """Return the ConfigMap of the plugin, and whether an object names the ConfigMap.

    Config-managers mount the ConfigMap, or a ClusterPolicy names it. Otherwise, the only ConfigMap with configurations
    of the plugin is returned. The ConfigMap is None if no ConfigMap or more than one is possible.
    """
    known_view = view.copy_without_missing_objects()
    named = {name for each in known_view.list_typed(DaemonSet) for _, name in _config_managers(each)} or {
        ("", each.spec.device_plugin.config.name) for each in known_view.list_typed(ClusterPolicy)
    } - {("", "")}
    candidates = _config_maps_of_names(view, named)
    if not named:
        candidates = [each for each in all_config_maps(view) if _has_plugin_configurations(each)]
    return candidates[0] if len(candidates) == 1 and len(named) < 2 else None, bool(named)


def _config_maps_of_names(view: ClusterView, named: AbstractSet[tuple[str, str]]) -> list[ConfigMap]:
    """Return the ConfigMaps with one of the namespaces and names; the namespace "" means any."""
    return [each for each in all_config_maps(view) if (each.namespace, each.name) in named or ("", each.name) in named]


def _config_managers(daemon_set: DaemonSet) -> Iterator[tuple[Container, tuple[str, str]]]:
    """Yield the containers with a config-manager, and the namespace and name of the ConfigMap that each mounts."""
    spec = daemon_set.spec.template.spec
    for container in spec.all_containers():
        folder = container.environment.by_name().get(_SOURCE)
        volumes = {mount.name for mount in container.volume_mounts if folder and mount.mount_path == folder}
        for volume in spec.volumes:
            if volume.name in volumes and volume.config_map.name and not volume.config_map.has("items"):
                yield container, (daemon_set.namespace, volume.config_map.name)


def _has_plugin_configurations(config_map: ConfigMap) -> bool:
    """Return whether all values of a ConfigMap look like configurations of the device plugin."""
    texts = config_map.data.values()
    is_known = (_VERSION in text and any(f"{key}:" in text for key in _CONFIGURATION_KEYS) for text in texts)
    return bool(texts) and all(is_known)


def _check_mig_config(node: Node, name: str, view: ClusterView) -> Iterator[Problem]:
    """Report a MIG profile that is not in the ConfigMap of a ClusterPolicy."""
    for policy in view.copy_without_missing_objects().list_typed(ClusterPolicy):
        manager = policy.spec.mig_manager
        config_map_name = manager.config.name or _DEFAULT_PROFILES
        if manager.enabled is False or (config_map_name == _DEFAULT_PROFILES and not _has_default_profiles(view)):
            continue
        texts = [each.data.get(_MIG_KEY, "") for each in all_config_maps(view) if each.name == config_map_name]
        parsed = parse_configuration(texts[0], view) if len(texts) == 1 else None
        if parsed is not None and parsed.mig_configs and name not in parsed.mig_configs:
            message = f"is not a profile of ConfigMap `{config_map_name}`, which has {either(parsed.mig_configs)}"
            path = node.metadata.path("labels", _MIG_LABEL)
            yield MIG_CONFIG.problem(path, message, "name one of these profiles, or add the profile", name)


def _has_default_profiles(view: ClusterView) -> bool:
    """Return whether the installed GPU operator is known to use its default ConfigMap with profiles."""
    releases = [*_releases_of_images(_OPERATOR, images_of_deployments(view))]
    return bool(releases) and all(each is not None and each < _GENERATED_SINCE for each in releases)
