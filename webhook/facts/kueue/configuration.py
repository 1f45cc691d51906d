"""The Configuration of Kueue: the managed kinds and namespaces, how resources are counted, and the feature gates.

Kueue reads a Configuration when it starts, from ConfigMap `kueue-manager-config` in namespace `kueue-system`. If the
ConfigMap has another name or cannot be read, a param may contain the Configuration. Without ConfigMap and param, the
defaults of the release apply. Flags of Kueue's manager may also turn on a gate, but checks cannot see these flags.

Source: kubernetes-sigs/kueue@ff69552e apis/config/v1beta2, config/components/manager and pkg/features/kube_features.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery import quantity
from webhook.apimachinery.attributes import JSON, NAME_LABEL, GroupVersionKind
from webhook.apimachinery.releases import Release
from webhook.errors import InputError
from webhook.facts.assumptions import CONFIGURATION_FILE, KUEUE
from webhook.facts.kinds import POD, TRAIN_JOB
from webhook.facts.kueue.job_types import pod_templates
from webhook.facts.kueue.objects import CONFIGURATION, GROUP, LOCAL_QUEUE
from webhook.facts.kueue.releases import (
    OLDEST,
    TRAINING_OFF,
    find_kueue_patch,
    find_kueue_release,
    is_kueue_release_known,
)
from webhook.facts.subject import Subject
from webhook.rules.problem import MissingObject
from webhook.text.caches import TwoGenerationCache
from webhook.typed.fields import Amounts, Part, Parts, Raw, Text, Texts, Truth, Truths
from webhook.typed.objects import ConfigMap
from webhook.typed.pods import Pod
from webhook.typed.view import Typed
from webhook.yamltext import yamlfile

FRAMEWORK_OF_KIND: Final[Mapping[tuple[str, str], str]] = {
    ("batch", "Job"): "batch/job",
    ("", "Pod"): "pod",
    ("apps", "Deployment"): "deployment",
    ("apps", "StatefulSet"): "statefulset",
    ("jobset.x-k8s.io", "JobSet"): "jobset.x-k8s.io/jobset",
    ("kubeflow.org", "MPIJob"): "kubeflow.org/mpijob",
    TRAIN_JOB: "trainer.kubeflow.org/trainjob",
    ("ray.io", "RayJob"): "ray.io/rayjob",
    ("ray.io", "RayCluster"): "ray.io/raycluster",
    ("ray.io", "RayService"): "ray.io/rayservice",
    ("workload.codeflare.dev", "AppWrapper"): "workload.codeflare.dev/appwrapper",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "leaderworkerset.x-k8s.io/leaderworkerset",
    ("kubeflow.org", "PyTorchJob"): "kubeflow.org/pytorchjob",
    ("kubeflow.org", "TFJob"): "kubeflow.org/tfjob",
    ("kubeflow.org", "XGBoostJob"): "kubeflow.org/xgboostjob",
    ("kubeflow.org", "PaddleJob"): "kubeflow.org/paddlejob",
    ("kubeflow.org", "JAXJob"): "kubeflow.org/jaxjob",
    ("sparkoperator.k8s.io", "SparkApplication"): "sparkoperator.k8s.io/sparkapplication",
}
"""The kinds that Kueue can manage, and their names in its Configuration."""
MISSING_CONFIGURATION: Final = MissingObject(
    kind="ConfigMap", name=CONFIGURATION.name, namespace=CONFIGURATION.namespace
)
"""The missing object that is reported if no Configuration is known."""
UNSEEN_CONFIGURATION: Final = MissingObject(
    kind="Kueue's Configuration", name="", why="is in another folder: name its file with --context"
)
"""The missing object that is reported if only other folders have a Configuration."""
ADMISSION_GATED_BY_GATE: Final = "AdmissionGatedBy"
ELASTIC_JOBS_GATE: Final = "ElasticJobsViaWorkloadSlices"
CONCURRENT_ADMISSION_GATE: Final = "ConcurrentAdmission"
DEVICE_CLAIMS_GATE: Final = "KueueDRAIntegration"
REJECT_CLAIMS_GATE: Final = "KueueDRARejectWorkloadsWhenDRADisabled"
EXTENDED_RESOURCES_GATE: Final = "KueueDRAIntegrationExtendedResource"
NON_NEGATIVE_RESOURCES_GATE: Final = "WorkloadValidateResourcesAreNonNegative"
IMMUTABLE_GROUP_SIZE_GATE: Final = "LWSImmutableGroupSize"
MULTI_LAYER_TOPOLOGY_GATE: Final = "TASMultiLayerTopology"
PRIORITY_BOOST_GATE: Final = "PriorityBoost"
TOPOLOGY_GATE: Final = "TopologyAwareScheduling"
WORKLOAD_ANNOTATION_GATE: Final = "WorkloadIdentifierAnnotations"
NAMESPACE_SELECTOR_GATE: Final = "ManagedJobsNamespaceSelectorAlwaysRespected"
_CONFIGURATION: Final = GroupVersionKind("config.kueue.x-k8s.io", "v1beta2", "Configuration")
_TRAINING: Final = ("pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob")
_ALPHA: Final = ("sparkapplication",)
_SECONDS_PER_CHARACTER: Final = 1e-5
"""The seconds that parsing YAML takes for each character. Parsing cannot be interrupted."""
_BYTES_PER_CHARACTER: Final = 10
_DEFAULT_NAMESPACE_SELECTOR: Final = {
    "matchExpressions": [{"key": NAME_LABEL, "operator": "NotIn", "values": ["kube-system", "kueue-system"]}]
}
_ON_SINCE: Final[Mapping[str, Release]] = {
    ADMISSION_GATED_BY_GATE: (0, 19),
    ELASTIC_JOBS_GATE: (0, 18),
    DEVICE_CLAIMS_GATE: (0, 18),
    REJECT_CLAIMS_GATE: (0, 18),
    EXTENDED_RESOURCES_GATE: (0, 19),
    NON_NEGATIVE_RESOURCES_GATE: (0, 19),
    IMMUTABLE_GROUP_SIZE_GATE: (0, 19),
    MULTI_LAYER_TOPOLOGY_GATE: (0, 19),
    TOPOLOGY_GATE: (0, 14),
    WORKLOAD_ANNOTATION_GATE: (0, 18),
    NAMESPACE_SELECTOR_GATE: (0, 15),
}
"""The first release in which a gate is on by default; other gates are off by default in all releases."""
_ON_SINCE_PATCH: Final = {NON_NEGATIVE_RESOURCES_GATE: 2, IMMUTABLE_GROUP_SIZE_GATE: 2}
"""The first patch of the release in `_ON_SINCE` in which a gate is on by default, such as 2 of 0.19.2; otherwise 0."""
_FORMER: Final = {DEVICE_CLAIMS_GATE: "DynamicResourceAllocation"}
"""The names of gates before 0.18."""


class Integrations(Typed):
    """The kinds that Kueue manages."""

    frameworks = Texts()
    external_frameworks = Texts()


class CelSelector(Typed):
    """A CEL expression that selects devices."""

    expression = Text()


class DeviceSelector(Typed):
    """Selects devices of a driver. Quota counts a counter or a capacity of these devices."""

    cel = Part(CelSelector)


class DeviceCounterOrCapacity(Typed):
    """A counter or a capacity of the devices of a driver."""

    name = Text()
    driver = Text()
    device_selector = Part(DeviceSelector)


class DeviceSource(Typed):
    """The counter or capacity of devices that is counted instead of the number of devices."""

    counter = Part(DeviceCounterOrCapacity)
    capacity = Part(DeviceCounterOrCapacity)


class DeviceClassMapping(Typed):
    """The name under which quota counts the devices of the listed DeviceClasses."""

    name = Text()
    device_class_names = Texts()
    sources = Parts(DeviceSource)


class ResourceTransformation(Typed):
    """The resources that a resource is converted to."""

    input = Text()
    strategy = Text()
    outputs = Amounts()
    multiply_by = Text()


class ResourceSettings(Typed):
    """The settings for counting resources."""

    exclude_resource_prefixes = Texts()
    transformations = Parts(ResourceTransformation)
    quota_check_strategy = Text()
    device_class_mappings = Parts(DeviceClassMapping)


class FairSharingSettings(Typed):
    """The settings of Fair Sharing. Only v1beta1 has the field `enable`."""

    enable = Truth()


class WrittenConfiguration(Typed):
    """config.kueue.x-k8s.io Configuration."""

    manage_jobs_without_queue_name = Truth()
    managed_jobs_namespace_selector = Raw()
    integrations = Part(Integrations)
    resources = Part(ResourceSettings)
    feature_gates = Truths()
    fair_sharing = Part(FairSharingSettings)
    api_version = Text()


@dataclass(frozen=True, slots=True, kw_only=True)
class KueueConfiguration:
    """The parts of a Configuration that the checks read.

    Args:
        is_known: whether a Configuration was found; otherwise the defaults of the release apply.
        frameworks: the kinds that Kueue manages, such as `batch/job`.
        external_kinds: the group and kind of objects that other controllers queue with Kueue.
        manages_all: whether jobs without a queue name are also managed.
        namespaces: the label selector of managed namespaces.
        device_classes: the names under which quota counts devices, by DeviceClass.
        sources: by DeviceClass, the counters or capacities that quota counts instead of the number of devices.
        excluded: prefixes such as `example.com/`. Resources with these prefixes are not counted.
        transformations: by resource, the amounts that replace one unit of the resource or are added to the unit.
        ignores_undeclared: whether resources that a ClusterQueue does not cover are ignored.
        feature_gates: the feature gates that the Configuration switches on or off.
        has_fair_sharing: whether Fair Sharing is on.
    """

    is_known: bool = False
    frameworks: frozenset[str]
    external_kinds: frozenset[tuple[str, str]] = frozenset()
    manages_all: bool = False
    namespaces: JSON = field(default_factory=dict, hash=False)
    device_classes: Mapping[str, str] = field(default_factory=dict, hash=False)
    sources: Mapping[str, tuple[CountedSource, ...]] = field(default_factory=dict, hash=False)
    excluded: tuple[str, ...] = ()
    transformations: Mapping[str, ResourceTransformationAmounts] = field(default_factory=dict, hash=False)
    ignores_undeclared: bool = False
    feature_gates: Mapping[str, bool] = field(default_factory=dict, hash=False)
    has_fair_sharing: bool = False

    def defines_resource(self, name: str) -> bool:
        """Return whether quota counts devices of claims, or resources of a transformation, under a name."""
        return (
            name in self.device_classes.values()
            or any(source.resource == name for sources in self.sources.values() for source in sources)
            or any(name in each.outputs for each in self.transformations.values())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedSource:
    """A counter or a capacity that quota counts instead of the number of devices.

    Args:
        resource: the resource with the quota for the counter or capacity.
        driver: the driver of the devices.
        counter: the name of the counter; "" for a capacity.
        capacity: the name of the capacity; "" for a counter.
        selector: an expression that selects the counted devices, "" for all devices.
    """

    resource: str
    driver: str
    counter: str = ""
    capacity: str = ""
    selector: str = ""


@dataclass(frozen=True, slots=True)
class ResourceTransformationAmounts:
    """The resources that replace one unit of a resource. If `is_kept`, they are added to the unit instead.

    Amounts are in thousandths. The amounts are multiplied by the amount of the resource `times`, unless `times` is "".
    """

    outputs: Mapping[str, int]
    is_kept: bool = True
    times: str = ""


def may_concern_kueue(subject: Subject) -> bool:
    """Return whether Kueue may manage an object. Call this function through `Subject.once`.

    Kueue may manage the object if the object or its pods have a label or an annotation of Kueue. Kueue may also manage
    the object if the namespace has queues, or if Kueue manages every job.
    """
    is_pod = subject.group_kind == POD
    keys = subject.typed(Pod).parts.keys if is_pod else subject.metadata.keys
    if GROUP in keys or subject.cluster.has_any(LOCAL_QUEUE, subject.attributes.namespace):
        return True
    if manages_jobs_without_queue_name(subject):
        return True
    return not is_pod and any(GROUP in template.metadata.keys for template in subject.once(pod_templates))


def manages_jobs_without_queue_name(subject: Subject) -> bool:
    """Return whether Kueue also manages jobs without a queue name. Only a Configuration can set this."""
    return bool(subject.once(configuration_text)) and subject.once(read_kueue_configuration).manages_all


def configuration_text(subject: Subject) -> str:
    """Return the Configuration as YAML, "" if it is not known. Call this function through `Subject.once`."""
    if subject.assumptions.kueue_configuration:
        return subject.assumptions.kueue_configuration
    stored = subject.cluster.get_without_noting(ConfigMap.gvk, CONFIGURATION.namespace, CONFIGURATION.name)
    text = ConfigMap.of(stored, (), subject.reading_context).data.get(CONFIGURATION_FILE, "") if stored else ""
    return text or _configuration_of_file(subject)


def read_kueue_configuration(subject: Subject) -> KueueConfiguration:
    """Return the Configuration. Call this function through `Subject.once`."""
    written = subject.once(configuration_text)
    key = written, find_kueue_release(subject)
    read = _READ.get(key, None)
    if read is None:
        subject.deadline.require_time_for_call(len(written) * _SECONDS_PER_CHARACTER)
        read = _read_configuration(*key)
        _READ.put(key, read, getsizeof(written) + len(written) * _BYTES_PER_CHARACTER)
    return read


def is_integrated_by_other_configuration(framework: str, subject: Subject) -> bool:
    """Return whether a Configuration in another folder lists a kind. Kueue may use that Configuration."""
    others = subject.cluster.cluster.objects_in_other_files(_CONFIGURATION)
    written = (WrittenConfiguration.of(each) for each in subject.deadline.charge_for_items(others))
    return any(framework in each.integrations.frameworks for each in written)


def _configuration_of_file(subject: Subject) -> str:
    """Return the text of the only Configuration object in the files; "" if there are no or several Configurations."""
    listed = subject.cluster.list_visible_json(_CONFIGURATION)
    return yamlfile.dump(listed[0]) if len(listed) == 1 else ""


_READ: Final[TwoGenerationCache[tuple[str, Release], KueueConfiguration | None]] = TwoGenerationCache(4 << 20)


def _read_configuration(text: str, release: Release) -> KueueConfiguration:
    written = _load_configuration(text)
    resources, frameworks = written.resources, written.integrations.frameworks
    return KueueConfiguration(
        is_known=bool(written.json),
        frameworks=frozenset(frameworks) if frameworks else default_integrations(release),
        external_kinds=frozenset(map(_group_kind_of_framework, written.integrations.external_frameworks)),
        manages_all=written.manage_jobs_without_queue_name,
        namespaces=written.managed_jobs_namespace_selector or _DEFAULT_NAMESPACE_SELECTOR,
        device_classes=_quota_names_of_device_classes(resources),
        sources=_sources_of_device_classes(resources),
        excluded=tuple(resources.exclude_resource_prefixes),
        transformations=dict(map(_amounts_of_transformation, resources.transformations)),
        ignores_undeclared=resources.quota_check_strategy == "IgnoreUndeclared",
        feature_gates=dict(written.feature_gates),
        has_fair_sharing=_has_fair_sharing(written),
    )


def _group_kind_of_framework(name: str) -> tuple[str, str]:
    """Return the group and kind of an external framework, which is written as `Kind.version.group`."""
    kind, _, rest = name.partition(".")
    return rest.partition(".")[2], kind


def _has_fair_sharing(written: WrittenConfiguration) -> bool:
    """Return whether Fair Sharing is on: in v1beta1 if `enable` is true, in v1beta2 if the field is set."""
    sharing = written.fair_sharing
    return sharing.is_set and (sharing.enable or not written.api_version.endswith("/v1beta1"))


def default_integrations(release: Release = KUEUE) -> frozenset[str]:
    """Return the names of the kinds that a release manages by default."""
    off = (*_ALPHA, *(_TRAINING if release >= TRAINING_OFF else ()))
    return frozenset(name for name in FRAMEWORK_OF_KIND.values() if name.rpartition("/")[2] not in off)


def _load_configuration(text: str) -> WrittenConfiguration:
    try:
        documents = yamlfile.load(text)
    except InputError:  # Kueue cannot start with this text, and the last valid Configuration is not known
        documents = ()
    return WrittenConfiguration.of(documents[0].value if documents else None)


def _quota_names_of_device_classes(resources: ResourceSettings) -> Mapping[str, str]:
    """Return the names under which quota counts devices, by DeviceClass: for each class, the first name that the
    Configuration gives.
    """
    names: dict[str, str] = {}
    for mapping in resources.device_class_mappings:
        for device_class in mapping.device_class_names:
            names.setdefault(device_class, mapping.name)
    return names


def _sources_of_device_classes(resources: ResourceSettings) -> Mapping[str, tuple[CountedSource, ...]]:
    """Return the sources by DeviceClass. A class has the sources of all its mappings, each under the name of the
    mapping.
    """
    sources: dict[str, tuple[CountedSource, ...]] = {}
    for mapping in resources.device_class_mappings:
        for device_class in mapping.device_class_names if mapping.sources else ():
            listed = tuple(_counted_source(mapping.name, source) for source in mapping.sources)
            sources[device_class] = (*sources.get(device_class, ()), *listed)
    return sources


def _counted_source(resource: str, source: DeviceSource) -> CountedSource:
    part = source.counter or source.capacity
    return CountedSource(
        resource=resource,
        driver=part.driver,
        counter=source.counter.name,
        capacity=source.capacity.name,
        selector=part.device_selector.cel.expression,
    )


def _amounts_of_transformation(written: ResourceTransformation) -> tuple[str, ResourceTransformationAmounts]:
    amounts = {name: quantity.read_quantity_or_none(value) for name, value in written.outputs.items()}
    outputs = {name: amount.milli_value() for name, amount in amounts.items() if amount is not None}
    return written.input, ResourceTransformationAmounts(outputs, written.strategy != "Replace", written.multiply_by)


def is_gate_on(gate: str, subject: Subject) -> bool:
    """Return whether the Configuration or the default of the release switches a gate on.

    If the release is not known, the gate is on by default only if all supported releases have this default.
    """
    release = find_kueue_release(subject) if is_kueue_release_known(subject) else OLDEST
    return _is_gate_on_in_release(gate, release, subject)


def may_gate_be_on(gate: str, subject: Subject) -> bool:
    """Return whether the Configuration, or the default of any possible release, switches a gate on."""
    return _is_gate_on_in_release(gate, find_kueue_release(subject), subject)


def _is_gate_on_in_release(gate: str, release: Release, subject: Subject) -> bool:
    """Return whether a gate is on in a release. If the patch of the release is not known, the newest is assumed."""
    gates = subject.once(read_kueue_configuration).feature_gates
    configured = gates.get(gate, gates.get(_FORMER.get(gate, gate)))
    if configured is not None:
        return configured
    since = _ON_SINCE.get(gate)
    if release == since and (patch := find_kueue_patch(subject)) is not None:
        return patch >= _ON_SINCE_PATCH.get(gate, 0)
    return since is not None and release >= since


def missing_configuration_of_gate(gate: str, subject: Subject) -> tuple[MissingObject, ...]:
    """Return the missing object that could decide whether a gate is on; () if the Configuration names the gate."""
    read = subject.once(read_kueue_configuration)
    if gate in read.feature_gates:
        return ()
    why = f"names no feature gate {gate}" if read.is_known else "not found"
    return (replace(MISSING_CONFIGURATION, why=why),)
