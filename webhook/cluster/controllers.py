"""Finds which release of a controller the files of a tree install. The result is the Deployment of the controller, as
the published manifests create it.

A live cluster has this Deployment. For files, the Deployment is built from a release that a file states. A file states
it in a chart, a dependency of a chart, an image of a kustomization, or an object that installs a chart. Views then
treat the Deployment as an object of this file. Releases in tests and in copies of other projects are not used. The
release is unknown if a folder is named after another release.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import get
from webhook.apimachinery.releases import Release, parse_release
from webhook.cluster.applied_together import NEVER_APPLIED
from webhook.cluster.interest import Interest, ObjectScope
from webhook.cluster.kustomizations import FILES as KUSTOMIZATIONS
from webhook.cluster.naming import FileObject

DEPLOYMENT: Final = GroupVersionKind("apps", "v1", "Deployment")
CHART: Final = "Chart.yaml"
_FIELDS: Final = frozenset(("spec.template.spec.containers.image",))
_TESTS: Final = frozenset(("test", "tests", "e2e"))
_FOLDER: Final = re.compile(r"(?:release-)?(v?[0-9]{1,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?)")


class Controller(Struct, frozen=True, kw_only=True):
    """A controller; some rules depend on its release.

    Args:
        place: namespace and name of the Deployment in the published manifests.
        image: the path of the controller's image without the registry.
        charts: the names of the controller's Helm chart in different releases.
    """

    place: ObjectScope
    image: str
    charts: tuple[str, ...]

    @property
    def deployment_interest(self) -> Interest:
        """Return the interest in the fields of the Deployment."""
        return Interest(DEPLOYMENT, _FIELDS, scope=self.place)


KUEUE: Final = Controller(
    place=ObjectScope(namespace="kueue-system", name="kueue-controller-manager"),
    image="kueue/kueue",
    charts=("kueue",),
)
"""Source: kubernetes-sigs/kueue@ff69552e config/default and charts/kueue."""
TRAINER: Final = Controller(
    place=ObjectScope(namespace="kubeflow-system", name="kubeflow-trainer-controller-manager"),
    image="trainer/trainer-controller-manager",
    charts=("kubeflow-trainer",),
)
"""Source: kubeflow/trainer@8c0f5059bd51 manifests/overlays/manager and charts/kubeflow-trainer."""
KSERVE: Final = Controller(
    place=ObjectScope(namespace="kserve", name="kserve-controller-manager"),
    image="kserve/kserve-controller",
    charts=("kserve-resources", "kserve"),
)
KSERVE_LLM: Final = Controller(
    place=ObjectScope(namespace="kserve", name="llmisvc-controller-manager"),
    image="kserve/llmisvc-controller",
    charts=("kserve-llmisvc-resources",),
)
"""The controller of LLMInferenceServices. Source: kserve/kserve@aaac4e294 config/manager, config/llmisvc and charts."""
CONTROLLERS: Final = (KUEUE, TRAINER, KSERVE, KSERVE_LLM)
_IMAGES: Final = "|".join(re.escape(each.image) for each in CONTROLLERS)
_CHARTS: Final = "|".join(re.escape(chart) for each in CONTROLLERS for chart in each.charts)
_NAMES: Final = tuple(name for each in CONTROLLERS for name in (each.image, *each.charts))
"""Every match of `_MAY_STATE` contains one of these names. A search for the names is much faster than the pattern."""
_MAY_STATE: Final = re.compile(rf"""{_IMAGES}|(?:name|chart)["']?:\s*["']?(?:{_CHARTS})(?:["'\s]|$)""")


class ControllerRelease(Struct, frozen=True):
    """A release of a controller, and its file."""

    controller: Controller
    release: Release
    file: str


def may_state_release(text: str) -> bool:
    """Return whether a document of a text may state the release of a controller."""
    return any(name in text for name in _NAMES) and _MAY_STATE.search(text) is not None


def find_releases_in_document(file: str, value: JSON) -> Iterator[ControllerRelease]:
    """Yield the releases that a document of a file states."""
    if isinstance(value, dict) and not is_test_or_vendored_file(file):
        for controller in CONTROLLERS:
            for release in _find_releases_of_controller(file, value, controller):
                if release is not None:
                    yield ControllerRelease(controller, release, file)


def assumed_deployments_of_controllers(
    path: str, stated: Iterable[ControllerRelease]
) -> Mapping[tuple[str, str], FileObject]:
    """Return the Deployments of the controllers for the view from a file, by namespace and name.

    A controller is left out if files, or the folders above this file, state different releases.
    """
    named = _releases_in_folder_names(path)
    seen: dict[Controller, list[ControllerRelease]] = {}
    for each in stated:
        seen.setdefault(each.controller, []).append(each)
    return {
        (controller.place.namespace, controller.place.name): _deployment_of_release(found_objects[0])
        for controller, found_objects in seen.items()
        if len({each.release for each in found_objects} | named) == 1
    }


def _releases_in_folder_names(path: str) -> set[Release | None]:
    matches = (_FOLDER.fullmatch(each) for each in path.split("/")[:-1])
    return {parse_release(match[1]) for match in matches if match}


def is_test_or_vendored_file(file: str) -> bool:
    """Return whether a file belongs to tests, or to a copy of another project."""
    return not (NEVER_APPLIED | _TESTS).isdisjoint(file.split("/")[:-1])


def _find_releases_of_controller(
    file: str, value: Mapping[str, JSON], controller: Controller
) -> Iterator[Release | None]:
    if posixpath.basename(file) == CHART:
        if value.get("name") in controller.charts:
            yield _release_or_none(value.get("appVersion") or value.get("version"))
        yield from _releases_of_charts(value.get("dependencies"), controller)
    elif posixpath.basename(file) in KUSTOMIZATIONS:
        for image in _dicts_of_list(value.get("images")):
            name = image.get("newName") or image.get("name")
            yield parse_image_name(f"{name}:{image.get('newTag')}").release_of(controller.image)
        yield from _releases_of_charts(value.get("helmCharts"), controller)
    elif value.get("kind") == DEPLOYMENT.kind:
        for container in _dicts_of_list(get(value, ("spec", "template", "spec", "containers"))):
            yield parse_image_name(str(container.get("image"))).release_of(controller.image)
    else:  # a HelmRelease of Flux, an Application of Argo CD, a HelmChart of k3s
        spec = value.get("spec")
        sources = [get(spec, ("chart", "spec")), get(spec, ("source",)), *_list_or_empty(get(spec, ("sources",))), spec]
        yield from _releases_of_charts(sources, controller)


def _releases_of_charts(entries: JSON, controller: Controller) -> Iterator[Release | None]:
    for each in _dicts_of_list(entries):
        if each.get("chart") in controller.charts or each.get("name") in controller.charts:
            yield _release_or_none(each.get("version") or each.get("targetRevision"))


def _release_or_none(value: JSON) -> Release | None:
    return parse_release(value) if isinstance(value, str) else None


def _list_or_empty(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


def _dicts_of_list(value: JSON) -> Iterator[Mapping[str, JSON]]:
    return (each for each in _list_or_empty(value) if isinstance(each, dict))


def _deployment_of_release(stated: ControllerRelease) -> FileObject:
    place, (major, minor) = stated.controller.place, stated.release
    container = {"name": "manager", "image": f"{stated.controller.image}:v{major}.{minor}"}
    value = {
        "apiVersion": f"{DEPLOYMENT.group}/{DEPLOYMENT.version}",
        "kind": DEPLOYMENT.kind,
        "metadata": {"namespace": place.namespace, "name": place.name},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    return FileObject(stated.file, place.namespace, place.name, value)
