"""The configuration and the release of NVIDIA's device plugin, as far as objects of files show them.

A label of a node names its configuration; a ConfigMap with exactly that key has it. No other object shows which
ConfigMap a plugin reads. Source: NVIDIA/k8s-device-plugin@1b826acc6 api/config/v1 and cmd/config-manager/main.go;
NVIDIA/gpu-operator@a22dbf671 values.yaml for the releases of the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from webhook.apimachinery.releases import Release, parse_release
from webhook.errors import InputError
from webhook.facts.nodes.node_offers import NodeOffer, images_of_deployments
from webhook.facts.nodes.types import PluginConfiguration
from webhook.facts.view import ClusterView
from webhook.typed.cluster_objects import DaemonSet
from webhook.typed.collections import Items
from webhook.typed.objects import ConfigMap
from webhook.typed.view import ReadingContext
from webhook.yamltext import yamlfile

CONFIG_LABEL: Final = "nvidia.com/device-plugin.config"
MPS_RELAXED: Final[Release] = (0, 20)  # failRequestsGreaterThanOne: false is honoured for MPS
_IMAGE: Final = "k8s-device-plugin"
_OPERATOR: Final = "gpu-operator"
_OF_OPERATOR: Final[Mapping[Release, Release]] = {
    (24, 9): (0, 17),
    (25, 3): (0, 17),
    (25, 10): (0, 18),
    (26, 3): (0, 19),
    (26, 7): (0, 20),
}
_SECONDS_A_CHARACTER: Final = 1e-5
"""The characters of YAML."""


def plugin_release(view: ClusterView) -> Release | None:
    """Return the release of the device plugin, from the image of its DaemonSet or of the GPU operator."""
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
        name, _, tag = each.partition("@")[0].rpartition(":")
        if name.rpartition("/")[2] == image:
            yield parse_release(tag)


def _images_of_daemon_sets(view: ClusterView) -> Iterator[str]:
    for each in view.copy_without_missing_objects().list_typed(DaemonSet):
        yield from (container.image for container in each.spec.template.spec.containers)


def plugin_configuration(offer: NodeOffer, view: ClusterView) -> PluginConfiguration | None:
    """Return the configuration of the plugin on a node, None if it is not known."""
    name = offer.labels.get(CONFIG_LABEL, "")
    texts = [each.data[name] for each in all_config_maps(view) if name in each.data] if name else []
    return parse_configuration(texts[0], view) if len(texts) == 1 else None


def all_config_maps(view: ClusterView) -> Items[ConfigMap]:
    """Return the ConfigMaps of all namespaces in files; a live view does not hold them."""
    return view.once(all_config_maps, lambda: view.copy_without_missing_objects().list_typed(ConfigMap))


def parse_configuration(text: str, view: ClusterView) -> PluginConfiguration | None:
    """Return a configuration in YAML, None if it cannot be read."""
    view.deadline.require_time_for_call(len(text) * _SECONDS_A_CHARACTER)
    try:
        documents = yamlfile.load(text)
    except InputError:
        return None
    if len(documents) != 1:
        return None
    return PluginConfiguration.of(documents[0].value, (), ReadingContext(view.deadline))
