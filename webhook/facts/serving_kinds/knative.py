"""How KServe deploys an InferenceService, and fields of pods that Knative refuses.

KServe deploys with Knative, or as a Deployment in Standard mode. The mode in the status counts first, then the mode in
the annotation, then the cluster's default in a ConfigMap. The ConfigMap may be in another namespace than `kserve`, so
the default is often not known.

Knative refuses many fields of a PodSpec, in Services of Knative and in InferenceServices, unless a key of ConfigMap
config-features turns the field on. By default all these fields are off. Knative never accepts a grace period. A timeout
is at most max-revision-timeout-seconds, which is 600 by default. The operator of Knative writes spec.config of
KnativeServing into these ConfigMaps.

Source: kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/utils/utils.go GetDeploymentMode;
knative/serving@98e5ef90 pkg/apis/serving/k8s_validation.go, pkg/apis/serving/fieldmask.go and
pkg/apis/config/features.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import FieldPath, get
from webhook.apimachinery.quantity import read_count
from webhook.cluster.interest import Interest, ObjectScope, interest_in_fields
from webhook.facts.serving_kinds.groups import SERVING_KIND
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.typed.fields import Labels, Part, Text
from webhook.typed.objects import ConfigMap, Object
from webhook.typed.serving import InferenceService
from webhook.typed.view import Typed

MODE: Final = "serving.kserve.io/deploymentMode"
KNATIVE: Final = "Knative"
STANDARD: Final = "Standard"
_MODES: Final[Mapping[str, str]] = {
    KNATIVE: KNATIVE,
    "Serverless": KNATIVE,
    STANDARD: STANDARD,
    "RawDeployment": STANDARD,
    "ModelMesh": "ModelMesh",
}
"""The modes, by their current and former names."""
_NAMESPACE: Final = "kserve"
_NAME: Final = "inferenceservice-config"
_LONGEST: Final = 16 * 1024
MODE_LOOKUP: Final = Interest(
    ConfigMap.gvk, frozenset(("data.deploy",)), scope=ObjectScope(namespace=_NAMESPACE, name=_NAME)
)


def deployment_mode(service: InferenceService, subject: Subject) -> str:
    """Return the mode of an InferenceService; "" if the mode is not known."""
    written = service.status.deployment_mode or service.metadata.annotations.get(MODE, "")
    return _MODES.get(written, "") or _MODES.get(_default_mode(subject), "")


class DeployConfig(Typed):
    """The key `deploy` of KServe's ConfigMap."""

    default_deployment_mode = Text()


def _default_mode(subject: Subject) -> str:
    config_map = subject.cluster_view().get_without_noting(ConfigMap.gvk, _NAMESPACE, _NAME)
    text = ConfigMap.of(config_map).data.get("deploy", "")
    try:
        return DeployConfig.of(json.loads(text[:_LONGEST])).default_deployment_mode
    except (ValueError, RecursionError):
        return ""


KNATIVE_FIELD: Final = SERVING_KIND.rule(
    "serving-kind/knative-field",
    title="Knative refuses a field of the pod",
    why=(
        "The Knative feature for this field is off. KServe reports the refusal only in events of the InferenceService, "
        "and creates no pod."
    ),
    refused_by="Knative's webhook",
    source="knative/serving@98e5ef90 pkg/apis/serving/k8s_validation.go",
    function="ValidatePodSpec",
    fails="controller",
    issues=(
        "https://github.com/kserve/kserve/issues/1425",
        "https://github.com/knative/serving/issues/15190",
        "https://github.com/knative/serving/issues/11388",
    ),
)
KNATIVE_FIELD_OFF_BY_DEFAULT: Final = SERVING_KIND.rule(
    "serving-kind/knative-default",
    title="The pod sets a field that Knative refuses by default",
    why=(
        "The Knative feature for this field is off by default, or the timeout is above the default maximum. claimgate "
        "does not know the ConfigMap that changes the default."
    ),
    refused_by="Knative's webhook",
    source="knative/serving@98e5ef90 pkg/apis/config/features.go",
    level="advice",
    fails="controller",
)
_SYSTEM: Final = "knative-serving"
_DEFAULTS: Final = f"ConfigMap config-defaults of namespace {_SYSTEM}"
_CONFIG_MAP: Final = GroupVersionKind("", "v1", "ConfigMap")
LOOKUPS: Final = (
    *(
        Interest(_CONFIG_MAP, frozenset(("data",)), scope=ObjectScope(namespace=_SYSTEM, name=name))
        for name in ("config-features", "config-defaults")
    ),
    MODE_LOOKUP,
)


class KnativeConfig(Typed):
    """operator.knative.dev ConfigMapData: the data of ConfigMaps by their names. The prefix `config-` is optional."""

    features = Labels()
    config_features = Labels(name="config-features")
    defaults = Labels()
    config_defaults = Labels(name="config-defaults")


class KnativeServingSpec(Typed):
    """operator.knative.dev KnativeServingSpec."""

    config = Part(KnativeConfig)


class KnativeServing(Object):
    """operator.knative.dev KnativeServing."""

    gvk = GroupVersionKind("operator.knative.dev", "v1beta1", "KnativeServing")
    spec = Part(KnativeServingSpec)


OPERATOR_LOOKUPS: Final = (interest_in_fields(KnativeServing.gvk, "spec.config"),)
"""The look-ups of audits; a server reads the ConfigMaps that the operator of Knative writes."""
_FEATURES: Final[Mapping[str, str]] = {
    "nodeSelector": "kubernetes.podspec-nodeselector",
    "tolerations": "kubernetes.podspec-tolerations",
    "affinity": "kubernetes.podspec-affinity",
    "runtimeClassName": "kubernetes.podspec-runtimeclassname",
    "priorityClassName": "kubernetes.podspec-priorityclassname",
    "schedulerName": "kubernetes.podspec-schedulername",
    "initContainers": "kubernetes.podspec-init-containers",
    "topologySpreadConstraints": "kubernetes.podspec-topologyspreadconstraints",
    "hostIPC": "kubernetes.podspec-hostipc",
    "hostPID": "kubernetes.podspec-hostpid",
    "hostNetwork": "kubernetes.podspec-hostnetwork",
    "shareProcessNamespace": "kubernetes.podspec-shareprocessnamespace",
    "dnsPolicy": "kubernetes.podspec-dnspolicy",
    "dnsConfig": "kubernetes.podspec-dnsconfig",
    "hostAliases": "kubernetes.podspec-hostaliases",
    "securityContext": "kubernetes.podspec-securitycontext",
}
_VOLUMES: Final[Mapping[str, str]] = {
    "persistentVolumeClaim": "kubernetes.podspec-persistent-volume-claim",
    "hostPath": "kubernetes.podspec-volumes-hostpath",
    "csi": "kubernetes.podspec-volumes-csi",
}
_ON: Final = frozenset(("enabled", "allowed"))
_NEVER: Final = "terminationGracePeriodSeconds"
_LONGEST_S: Final = 600
_KNATIVE: Final = ("serving.knative.dev", "Service")
_OF_CLOUD_RUN: Final = ("run.googleapis.com/", "cloud.googleapis.com/")
"""The beginnings of the keys of Cloud Run's annotations, labels and node selectors."""


def check_knative_fields(subject: Subject) -> Iterator[Problem]:
    """Report fields that Knative refuses, in a Service of Knative or in an InferenceService that KServe deploys with
    Knative.
    """
    if subject.group_kind == _KNATIVE:
        at = ("spec", "template", "spec")
        spec = get(subject.object, at)
        if _is_of_cloud_run(spec, subject):
            return
        yield from _check_pod_spec(spec, at, subject)
        seconds = spec.get("timeoutSeconds") if isinstance(spec, dict) else None
        yield from _check_timeout(seconds, (*at, "timeoutSeconds"), subject)
        return
    service = subject.typed(InferenceService)
    if deployment_mode(service, subject) != KNATIVE:
        return
    predictor = service.spec.predictor
    yield from _check_pod_spec(predictor.json, predictor.at, subject)
    yield from _check_timeout(predictor.timeout, predictor.path("timeout"), subject)


def fields_that_knative_may_refuse(subject: Subject) -> Sequence[str]:
    """Return the fields of a pod that Knative refuses by default, if the settings of the cluster are not known that
    decide: the features of Knative, or the mode in which KServe deploys an InferenceService.
    """
    service = subject.typed(InferenceService)
    if subject.group_kind == (InferenceService.gvk.group, InferenceService.gvk.kind):
        if not deployment_mode(service, subject):
            problems = _check_pod_spec(service.spec.predictor.json, service.spec.predictor.at, subject)
            return [each.path.rpartition(".")[2] for each in problems]
    elif subject.group_kind != _KNATIVE:
        return ()
    problems = check_knative_fields(subject)
    return [each.path.rpartition(".")[2] for each in problems if each.code == KNATIVE_FIELD_OFF_BY_DEFAULT.id]


def _check_timeout(timeout: Any, path: FieldPath, subject: Subject) -> Iterator[Problem]:
    longest, is_known = _longest_timeout(subject)
    if not isinstance(timeout, int) or timeout <= longest:
        return
    fix = f"set at most {longest}, or ask the administrator to raise max-revision-timeout-seconds in {_DEFAULTS}"
    if is_known:
        message = f"is above max-revision-timeout-seconds, which is {longest}, so Knative refuses the value"
        yield _problem_of_field(path, message, fix, timeout)
    else:
        message = f"is refused by Knative while max-revision-timeout-seconds is {longest}, which is the default"
        yield _problem_of_default(path, message, fix, timeout)


def _is_of_cloud_run(spec: Any, subject: Subject) -> bool:
    """Return whether a Service is for Google's Cloud Run, which reads the API of Knative and has other limits."""
    metadata = Object.of(get(subject.object, ("spec", "template")), (), subject.reading_context).metadata
    selector = spec.get("nodeSelector") if isinstance(spec, dict) else None
    keys = (
        *(subject.metadata.annotations, subject.metadata.labels, metadata.annotations, metadata.labels),
        selector if isinstance(selector, dict) else {},
    )
    return any(str(key).startswith(_OF_CLOUD_RUN) for each in keys for key in each)


def _problem_of_field(path: FieldPath, message: str, fix: str, value: int | None = None) -> Problem:
    return KNATIVE_FIELD.problem(path, message, fix, value)


def _problem_of_default(path: FieldPath, message: str, fix: str, value: int | None = None) -> Problem:
    return KNATIVE_FIELD_OFF_BY_DEFAULT.problem(path, message, fix, value)


def _check_pod_spec(spec: Any, at: FieldPath, subject: Subject) -> Iterator[Problem]:
    if not isinstance(spec, dict):
        return
    if spec.get(_NEVER) is not None:
        message = "is a field that Knative never accepts"
        yield _problem_of_field((*at, _NEVER), message, "remove the field, and set timeoutSeconds")
    features, settings = _data_of_config_map(subject, "config-features"), _settings_of_operator(subject)
    operator_features = {**settings.features, **settings.config_features}
    wanted_fields = [(name, key) for name, key in _FEATURES.items() if spec.get(name)]
    volumes = spec.get("volumes")
    for volume in subject.deadline.charge_for_items(volumes if isinstance(volumes, list) else ()):
        wanted_fields += [
            ("volumes", key) for name, key in _VOLUMES.items() if isinstance(volume, dict) and volume.get(name)
        ]
    for name, key in dict.fromkeys(wanted_fields):
        written = operator_features.get(key, None if features is None else features.get(key, "disabled"))
        state = None if written is None else str(written).lower()
        if state in _ON:
            continue
        place = (
            "spec.config.features of KnativeServing"
            if operator_features
            else f"ConfigMap config-features of namespace {_SYSTEM}"
        )
        removal = "remove the volume" if name == "volumes" else f"remove {name}"
        otherwise = removal if subject.group_kind == _KNATIVE else f"set annotation {MODE}: {STANDARD}"
        fix = f"{otherwise}, or ask the administrator to set {key}: enabled in {place}"
        if state is None:
            message = f"is a field that Knative refuses while {key} is disabled, which is the default"
            yield _problem_of_default((*at, name), message, fix)
        else:
            message = f"is refused by Knative because {key} is {state}, so no pod is created"
            yield _problem_of_field((*at, name), message, fix)


def _longest_timeout(subject: Subject) -> tuple[int, bool]:
    """Return the longest timeout in seconds, and whether an object that may set this timeout is known."""
    settings, written = _settings_of_operator(subject), _data_of_config_map(subject, "config-defaults")
    data = {**(written or {}), **settings.defaults, **settings.config_defaults}
    seconds = read_count(str(data.get("max-revision-timeout-seconds", "")))
    return _LONGEST_S if seconds is None else seconds, written is not None or bool(settings.json)


def _data_of_config_map(subject: Subject, name: str) -> Mapping[str, Any] | None:
    config_map = subject.cluster_view().get_without_noting(_CONFIG_MAP, _SYSTEM, name)
    data = config_map.get("data") if isinstance(config_map, dict) else None
    return data if isinstance(data, dict) else None


def _settings_of_operator(subject: Subject) -> KnativeConfig:
    """Return what the operator of Knative writes into ConfigMaps.

    Source: knative/operator@5ee67e8a pkg/reconciler/common/config_maps.go ConfigMapTransform.
    """
    view = subject.cluster_view().copy_without_missing_objects()
    return next((each.spec.config for each in view.list_typed(KnativeServing)), KnativeConfig.of({}))
