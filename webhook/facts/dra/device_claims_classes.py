"""Checks that the DeviceClasses of claims and of extended resources exist.

A class that a driver installs counts as existing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from webhook.apimachinery.paths import FieldPath
from webhook.facts.dra.requests import DeviceRequestOfClaim
from webhook.facts.dra.types import DEVICE_CLAIMS_ADVICE, DeviceClass
from webhook.facts.gpu import devices
from webhook.facts.pods import amounts
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Problem
from webhook.typed.fields import Amount
from webhook.typed.pod_parts import CLASS_PREFIX
from webhook.typed.pods import Pod, Resources

CLASS_EXISTS: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/class-exists",
    title="The DeviceClass does not exist",
    why="No device belongs to a class that does not exist, so the pods stay Pending.",
    source="k8s.io/dynamic-resource-allocation v0.36.1 structured",
    fails="pending",
)
CLASS_INSTALLED: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/class-installed",
    title="Current drivers use a ComputeDomain instead of this DeviceClass",
    why=(
        "The driver's chart no longer installs this class, although examples of the driver still name the class. "
        "Without the class, the pods stay Pending."
    ),
    source="kubernetes-sigs/dra-driver-nvidia-gpu demo/specs/quickstart/v1/imex-test1.yaml",
    fails="pending",
)
CLASS_AMOUNT: Final = DEVICE_CLAIMS_ADVICE.rule(
    "device-claims/class-amount",
    title="The number of devices is not whole, or differs between request and limit",
    why=(
        "Kubernetes does not check resources that name a DeviceClass. The scheduler finds no device for a fraction, so "
        "the pods stay Pending."
    ),
    source="KEP-5004",
    fails="pending",
)

DEVICE_CLASS: Final = DeviceClass.gvk
_NOT_INSTALLED: Final = {
    "imex.nvidia.com": "create a ComputeDomain, and name its ResourceClaimTemplate in the pods instead"
}
"""A DeviceClass that examples name, with a fix. Since 25.3, the chart of NVIDIA's driver does not install the class."""


class DeviceClassState(Struct, frozen=True):
    """What a view knows about a DeviceClass.

    Args:
        is_found: whether the class exists.
        is_absent: whether the class is known to be absent. If is_found and is_absent are both False, the class may
            exist.
        nearest: the existing class that was probably intended, for a class that was not found.
        extended_resource: extendedResourceName of the class.
    """

    is_found: bool = False
    is_absent: bool = False
    nearest: str = ""
    extended_resource: str = ""


class DeviceClasses:
    """The device classes of the cluster, each looked up once."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._found: dict[str, DeviceClass] = {}
        self._names: list[str] | None = None
        self._states: dict[str, DeviceClassState] = {"": DeviceClassState()}

    def get(self, name: str) -> DeviceClass:
        """Return the DeviceClass; the result is false for a class that is not found. Such a class is noted as missing,
        unless a driver installs the class.
        """
        if name not in self._found:
            view = (
                self._view.copy_without_missing_objects() if devices.is_class_installed_by_driver(name) else self._view
            )
            self._found[name] = view.find(DeviceClass, name, namespaced=False)
        return self._found[name]

    def names(self) -> list[str]:
        if self._names is None:
            self._names = [device_class.name for device_class in self._view.list_visible(DeviceClass)]
        return self._names

    def state(self, name: str) -> DeviceClassState:
        """Return what the view knows about a class.

        Drivers install classes, and files rarely have these classes. So a class counts as absent only if the view has
        all objects of a cluster.
        """
        if name not in self._states:
            self._states[name] = self._look_up_state(name)
        return self._states[name]

    def states(self, requests: Iterable[DeviceRequestOfClaim]) -> dict[str, DeviceClassState]:
        """Return what the view knows about the classes of requests and of their alternatives, by name."""
        classes = [choice.device_class for request in requests for choice in request.self_and_alternatives]
        return {name: self.state(name) for name in classes}

    def _look_up_state(self, name: str) -> DeviceClassState:
        device_class = self.get(name)
        if device_class:
            return DeviceClassState(is_found=True, extended_resource=device_class.spec.extended_resource_name)
        near = self._view.nearest(name, self.names())
        return DeviceClassState(is_absent=self._view.is_whole(DEVICE_CLASS), nearest=near)


def validate_class_exists(
    name: str, state: DeviceClassState, request_text: str, path: FieldPath, subject: Subject
) -> Iterator[Problem]:
    """Report a DeviceClass that does not exist: rules class-exists and class-installed."""
    if state.is_absent:
        near = (
            f"write `{state.nearest}` if that is meant, or ask the administrator to install"
            if state.nearest
            else "ask the administrator to install"
        )
        message = f"{request_text} `{name}`, which does not exist, so the pods stay Pending"
        fix = f"{near} the driver that brings the class"
        yield CLASS_EXISTS.problem(path, message, fix, for_administrators=not state.nearest)
    elif name in _NOT_INSTALLED and not state.is_found:
        message = f"{request_text} `{name}`, which no current release of its driver installs"
        yield CLASS_INSTALLED.problem(path, message, _NOT_INSTALLED[name])
    elif name and not state.is_found and not devices.is_class_installed_by_driver(name):
        view = subject.cluster_view()
        view.find(DeviceClass, name, namespaced=False)
        yield CLASS_EXISTS.problem(path, missing=view.all_missing_objects())


def validate_class_resources(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of extended resources of DeviceClasses (KEP-5004). The API server does not check them."""
    for container in subject.typed(Pod).spec.all_containers():
        resources = container.resources
        for name in _class_resource_names(resources):
            path = resources.path("limits" if name in resources.limits else "requests", name)
            device_class = name.removeprefix(CLASS_PREFIX)
            state = subject.once(_device_classes_of_view).state(device_class)
            yield from validate_class_exists(device_class, state, "requests DeviceClass", path, subject)
            if not state.is_absent:
                yield from _check_class_amount(path, resources.limits.get(name), resources.requests.get(name))


def _class_resource_names(resources: Resources) -> list[str]:
    names = dict.fromkeys((*resources.limits, *resources.requests))
    return [name for name in names if name.startswith(CLASS_PREFIX)]


def _device_classes_of_view(subject: Subject) -> DeviceClasses:
    return DeviceClasses(subject.cluster_view())


def _check_class_amount(path: FieldPath, limit: Amount | None, request: Amount | None) -> Iterator[Problem]:
    if _is_whole_and_equal(limit, request):
        return
    message, fix = "must be a whole number because a device cannot be divided", "set a whole number such as 1"
    if limit is None:
        message = "has no limit, but Kubernetes requires a limit for devices"
        fix = "set the limit to the request"
    elif request is not None and str(request) != str(limit):
        message = (
            f"must equal the request {amounts.amount_for_message(request)} because Kubernetes does not overcommit "
            "devices"
        )
        fix = "set the limit and the request to the same whole number"
    yield CLASS_AMOUNT.problem(
        path, message, fix, shown=amounts.amount_for_message(request if limit is None else limit)
    )


def _is_whole_and_equal(limit: Amount | None, request: Amount | None) -> bool:
    """Return whether the limit is a whole number, and the request is unset or equal to the limit."""
    if limit is None or (request is not None and str(request) != str(limit)):
        return False
    amount = amounts.read_quantity(amounts.amount_as_string(limit))
    return amount is not None and amount.is_whole()
