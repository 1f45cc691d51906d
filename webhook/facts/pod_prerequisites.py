"""Pods that the API server never creates, and pods in which the kubelet never creates containers.

Admission plugins refuse a pod if its RuntimeClass or ServiceAccount does not exist, or if Pod Security forbids a field.
The same plugins accept the object that creates the pods. A container may need a ConfigMap or Secret for a variable or a
mounted volume. If the ConfigMap or Secret does not exist, the kubelet does not create the container. The kubelet
ignores volumes that no container mounts. Only files show which ConfigMaps and Secrets exist: a live view has no
Secrets, and not all ConfigMaps.

Source: k8s.io/kubernetes v1.36 plugin/pkg/admission/priority, runtimeclass and serviceaccount, and pkg/kubelet;
k8s.io/pod-security-admission v0.36.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.cluster.known_kinds import is_built_in
from webhook.facts.gpu.device_pods import PLACED, located_templates, without_repeated_problems
from webhook.facts.kinds import RUNTIME_CLASS
from webhook.facts.pod_security import Breach, Enforced, breaches_of_pods, enforced_level
from webhook.facts.pods.pod_sets import is_part_of_template
from webhook.facts.subject import Check, Subject
from webhook.facts.view import NAMESPACES, ClusterView
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.text.wording import counted, some_of
from webhook.typed.fields import ValueMap
from webhook.typed.objects import ConfigMap
from webhook.typed.pods import Container, PodSpec, PodTemplate
from webhook.typed.view import ReadingContext, Typed
from webhook.typed.volumes import ConfigMapVolume, Projection, SecretVolume, Volume
from webhook.workloads.podsets import PodSet
from webhook.yamltext.placeholders import is_placeholder

POD_PREREQUISITES: Final = RuleGroup(
    "pod-prerequisites",
    refused_by="the API server, when the pod is created",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission",
    level="warn",
    fails="controller",
)
"""Reasons why admission plugins refuse the pods of an object, or why the kubelet creates no container."""
RUNTIME_CLASS_MISSING: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/runtime-class",
    title="The RuntimeClass of the pods does not exist",
    why="Admission refuses each pod, so no pod is created.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/runtimeclass/admission.go",
)
SERVICE_ACCOUNT_MISSING: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/service-account",
    title="The ServiceAccount of the pods does not exist",
    why="Admission refuses each pod, so no pod is created.",
    source="k8s.io/kubernetes v1.36 plugin/pkg/admission/serviceaccount/admission.go",
)
POD_SECURITY: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/pod-security",
    title="Pod Security of the namespace forbids the pods",
    why="Pod Security refuses each pod. The object that creates the pods is accepted with a warning.",
    source="k8s.io/pod-security-admission v0.36 policy/check_*.go",
)
CONFIGURATION: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/configuration",
    title="A ConfigMap or Secret of the pods does not exist",
    why=(
        "The kubelet creates no container before the object exists. The pod has a node and holds its devices, but "
        "stays in ContainerCreating or CreateContainerConfigError."
    ),
    refused_by="the kubelet",
    source="k8s.io/kubernetes v1.36 pkg/kubelet/kubelet_pods.go",
    function="makeEnvironmentVariables",
    fails="pending",
)
CONFIGURATION_KEY: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/configuration-key",
    title="A ConfigMap or Secret of the pods lacks a key",
    why=(
        "The kubelet creates no container before the key exists. The pod has a node and holds its devices, but stays "
        "in ContainerCreating or CreateContainerConfigError."
    ),
    refused_by="the kubelet",
    source="k8s.io/kubernetes v1.36 pkg/kubelet/kubelet_pods.go",
    function="makeEnvironmentVariables",
    fails="pending",
)
PULL_SECRET: Final = POD_PREREQUISITES.rule(
    "pod-prerequisites/pull-secret",
    title="A Secret in imagePullSecrets does not exist",
    why="The kubelet pulls without the Secret. The pull fails if the image is private and not on the node yet.",
    source="k8s.io/kubernetes v1.36 pkg/kubelet/kubelet_pods.go",
    function="getPullSecretsForPod",
    fails="pending",
)
_MOST_PLACES: Final = 4
"""The most containers and volumes that a message names."""
_MOST_NAMES: Final = 5
"""The most ConfigMaps and Secrets that a message names."""
_SERVICE_ACCOUNT: Final = GroupVersionKind("", "v1", "ServiceAccount")
_SECRET: Final = GroupVersionKind("", "v1", "Secret")
_CLUSTER_POLICY: Final = GroupVersionKind("nvidia.com", "v1", "ClusterPolicy")
_OF_OPERATORS: Final = frozenset(("nvidia", "nvidia-cdi", "nvidia-legacy"))
"""RuntimeClasses that the GPU operator creates."""
_WITH_OWN_ACCOUNTS: Final = frozenset(
    (
        *(("kubeflow.org", kind) for kind in ("MPIJob", "Notebook")),
        *(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService", "RayCronJob")),
        ("orchestration.aibrix.ai", "RayClusterFleet"),
    )
)
"""Kinds with controllers that create ServiceAccounts, or use the ServiceAccount that Kubeflow creates."""
_OF_EVERY_NAMESPACE: Final = frozenset(("kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"))
"""ConfigMaps that controllers create in each namespace."""
_MAKERS: Final = (
    ("external-secrets.io", "ExternalSecret"),
    ("external-secrets.io", "ClusterExternalSecret"),
    ("bitnami.com", "SealedSecret"),
    ("cert-manager.io", "Certificate"),
    ("trust.cert-manager.io", "Bundle"),
    ("secrets.hashicorp.com", "VaultStaticSecret"),
    ("secrets.hashicorp.com", "VaultDynamicSecret"),
    ("secrets.hashicorp.com", "VaultPKISecret"),
    ("onepassword.com", "OnePasswordItem"),
    ("secrets.infisical.com", "InfisicalSecret"),
    ("secrets-store.csi.x-k8s.io", "SecretProviderClass"),
    ("isindir.github.com", "SopsSecret"),
    ("objectbucket.io", "ObjectBucketClaim"),
)
"""Kinds with controllers that create Secrets or ConfigMaps. The created object may have any name that an object of
these kinds contains.
"""
_KINDS_IN_FILES: Final = frozenset((("", "Secret"), ("", "ConfigMap"), ("nvidia.com", "ClusterPolicy"), *_MAKERS))
_LOOKUPS: Final = (interest_in_fields(RUNTIME_CLASS), interest_in_fields(_SERVICE_ACCOUNT), NAMESPACES)


def check_prerequisites(subject: Subject) -> Iterator[Problem]:
    """Report why admission plugins refuse the pods of an object.

    If all objects of the cluster are known, also report missing ConfigMaps and Secrets.
    """
    view = subject.cluster_view()
    enforced = enforced_level(subject)
    for podset, template in subject.once(located_templates):
        spec = template.spec
        yield from without_repeated_problems(_check_runtime_class(spec, podset, view), subject)
        if subject.group_kind not in _WITH_OWN_ACCOUNTS:
            yield from without_repeated_problems(_check_service_account(spec, podset, view), subject)
        if enforced is not None:
            yield from without_repeated_problems(_check_pod_security(template, podset, enforced, subject), subject)
    if view.namespace and view.cluster.is_whole():
        yield from _check_configuration(subject)


def _check_runtime_class(spec: PodSpec, podset: PodSet, view: ClusterView) -> Iterator[Problem]:
    name = spec.runtime_class_name
    if not name or is_placeholder(name) or (name in _OF_OPERATORS and view.list_visible_json(_CLUSTER_POLICY)):
        return
    if view.is_absent(RUNTIME_CLASS, "", name):
        message = "is a RuntimeClass that does not exist, so no pod is created"
        fix = "remove runtimeClassName, or ask the administrator to create the RuntimeClass"
        yield RUNTIME_CLASS_MISSING.problem(podset.locate(spec.path("runtimeClassName")), message, fix, name)


def _check_service_account(spec: PodSpec, podset: PodSet, view: ClusterView) -> Iterator[Problem]:
    name = spec.service_account_name
    if name in ("", "default") or is_placeholder(name) or not view.namespace:
        return
    if view.is_absent(_SERVICE_ACCOUNT, view.namespace, name):
        message = "is a ServiceAccount that does not exist in the namespace, so no pod is created"
        fix = "create the ServiceAccount, or remove serviceAccountName"
        yield SERVICE_ACCOUNT_MISSING.problem(podset.locate(spec.path("serviceAccountName")), message, fix, name)


def _check_pod_security(
    template: PodTemplate, podset: PodSet, enforced: Enforced, subject: Subject
) -> Iterator[Problem]:
    breaches = breaches_of_pods(template, enforced, is_part=is_part_of_template(template, subject))
    if breaches:
        which = f"Pod Security `{enforced.level}` of namespace {subject.namespace}"
        message = f"{which} refuses the pods, because {_demands_as_text(breaches)}"
        fix = "change these fields, or use a namespace that allows the values"
        yield POD_SECURITY.problem(podset.locate(template.spec.at), message, fix, needs="securityContext")


def _demands_as_text(breaches: Iterable[Breach]) -> str:
    """Return the demands as a text, by container and volume: `in container a x must be y, z must not be true; in …`."""
    demands: dict[str, list[str]] = {}
    for each in breaches:
        demands.setdefault(each.of, []).append(each.demand)
    places = [f"in {of} {', '.join(demanded)}" for of, demanded in demands.items()]
    more = f"; and {counted(len(places) - _MOST_PLACES, 'other')}" if len(places) > _MOST_PLACES else ""
    return f"{'; '.join(places[:_MOST_PLACES])}{more}"


class FilledObject(Typed):
    """core/v1 ConfigMap or Secret."""

    data = ValueMap()
    string_data = ValueMap()
    binary_data = ValueMap()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationReference:
    """A ConfigMap or Secret that a pod refers to, and that is not optional.

    Args:
        kind: ConfigMap or Secret.
        name: the name of the object.
        path: the path of the name in the object with the pods.
        keys: the keys that the pod needs.
        use: what the kubelet needs the object for: a variable, a mounted volume, or the pull of images.
    """

    kind: GroupVersionKind
    name: str
    path: FieldPath
    keys: tuple[str, ...] = ()
    use: Literal["variable", "volume", "pull"]

    @property
    def text(self) -> str:
        """Return kind and name."""
        return f"{self.kind.kind} `{self.name}`"


def required_configuration(subject: Subject) -> tuple[ConfigurationReference, ...]:
    """Return the ConfigMaps and Secrets that the pods of an object need. Objects that a controller may create are left
    out. Call this function through `Subject.once`.
    """
    view, wanted = subject.cluster_view(), dict[tuple[str, str, str, tuple[str, ...]], ConfigurationReference]()
    for podset, template in subject.once(located_templates):
        for each in _references_of_pod(template.spec, podset):
            if each.name and not is_placeholder(each.name) and not _may_be_created(each, subject, view):
                wanted.setdefault((each.kind.kind, each.name, each.use, each.keys), each)
    return tuple(wanted.values())


def _references_of_pod(spec: PodSpec, podset: PodSet) -> Iterator[ConfigurationReference]:
    mounted = set[str]()
    for container in spec.all_containers():
        mounted.update(mount.name for mount in container.volume_mounts)
        yield from _references_of_variables(container, podset)
    for volume in spec.volumes:
        if volume.name in mounted:
            yield from _references_of_volume(volume, podset)
    for secret in spec.image_pull_secrets:
        at = podset.locate(secret.path("name"))
        yield ConfigurationReference(kind=_SECRET, name=secret.name, path=at, use="pull")


def _references_of_variables(container: Container, podset: PodSet) -> Iterator[ConfigurationReference]:
    for variable in container.env if container.has("env") else ():
        source = variable.value_from
        for kind, wanted in ((ConfigMap.gvk, source.config_map_key_ref), (_SECRET, source.secret_key_ref)):
            if wanted.name and not wanted.optional:
                at = podset.locate(wanted.path("name"))
                keys = (wanted.key,) if wanted.key else ()
                yield ConfigurationReference(kind=kind, name=wanted.name, path=at, keys=keys, use="variable")
    for listed in container.env_sources if container.has("envFrom") else ():
        for kind, named in ((ConfigMap.gvk, listed.config_map_ref), (_SECRET, listed.secret_ref)):
            if named.name and not named.optional:
                at = podset.locate(named.path("name"))
                yield ConfigurationReference(kind=kind, name=named.name, path=at, use="variable")


def _references_of_volume(volume: Volume, podset: PodSet) -> Iterator[ConfigurationReference]:
    of_volume: tuple[tuple[GroupVersionKind, str, FieldPath, ConfigMapVolume | Projection | SecretVolume], ...] = (
        (_SECRET, volume.secret.secret_name, volume.secret.path("secretName"), volume.secret),
        (ConfigMap.gvk, volume.config_map.name, volume.config_map.path("name"), volume.config_map),
        *((ConfigMap.gvk, each.name, each.path("name"), each) for each in volume.projected.config_maps),
        *((_SECRET, each.name, each.path("name"), each) for each in volume.projected.secrets),
    )
    for kind, name, path, source in of_volume:
        if name and not source.optional:
            keys = tuple(item.key for item in source.items if item.key)
            yield ConfigurationReference(kind=kind, name=name, path=podset.locate(path), keys=keys, use="volume")


def _may_be_created(wanted: ConfigurationReference, subject: Subject, view: ClusterView) -> bool:
    """Return whether a controller may create the object: for each namespace, for this job, or for another object."""
    if wanted.kind == ConfigMap.gvk and wanted.name in _OF_EVERY_NAMESPACE:
        return True
    owner, kind = subject.metadata.name, GroupVersionKind(subject.group_kind[0], "", subject.group_kind[1])
    if owner and wanted.name.startswith(f"{owner}-") and not is_built_in(kind):
        return True  # Trainer and Volcano create such objects for their plugins
    return f'"{wanted.name}"' in view.once(_text_of_makers, lambda: _text_of_makers(view))


def _text_of_makers(view: ClusterView) -> str:
    """Return the objects of the kinds in _MAKERS as one text."""
    kinds = (GroupVersionKind(group, "v1", kind) for group, kind in _MAKERS)
    texts = [json.dumps(obj, default=str) for kind in kinds for obj in view.list_json_here(kind)]
    view.deadline.spend(len(texts))
    return "\n".join(texts)


def _is_known(kind: GroupVersionKind, view: ClusterView) -> bool:
    """Return whether all objects of this kind are known. Then an object that is not found does not exist."""
    view.list_json_here(kind)
    return view.is_whole(kind)


def configuration_in_no_file(subject: Subject) -> tuple[str, ...]:
    """Return the needed ConfigMaps and Secrets that are in no file, if the files may be incomplete. A kind without any
    object in the namespace is skipped, because the files probably leave out this kind.
    """
    view = subject.cluster_view()
    if not view.namespace or view.cluster.is_whole():
        return ()
    wanted = [each for each in subject.once(required_configuration) if each.use != "pull"]
    kinds = {each.kind for each in wanted}
    listed = {kind for kind in kinds if view.list_json_here(kind)}
    absent = (
        each for each in wanted if each.kind in listed and view.has_no_object(each.kind, view.namespace, each.name)
    )
    return tuple(dict.fromkeys(each.text for each in absent))


def _check_configuration(subject: Subject) -> Iterator[Problem]:
    """Report missing ConfigMaps and Secrets in one problem, and the first missing key of each existing object."""
    view = subject.cluster_view()
    if not _is_known(_SECRET, view):
        return  # a live view has no Secrets, and may have only parts of ConfigMaps
    kinds = {kind for kind in (ConfigMap.gvk, _SECRET) if _is_known(kind, view)}
    wanted = [each for each in subject.once(required_configuration) if each.kind in kinds]
    absent = [each for each in wanted if view.has_no_object(each.kind, view.namespace, each.name)]
    yield from without_repeated_problems(_problems_of_absent_configuration(absent, view), subject)
    for each in wanted:
        if each not in absent:
            yield from without_repeated_problems(_check_keys(each, view), subject)


def _problems_of_absent_configuration(absent: Sequence[ConfigurationReference], view: ClusterView) -> Iterator[Problem]:
    pulls = [each for each in absent if each.use == "pull"]
    others = [each for each in absent if each.use != "pull"]
    for rule, listed in ((CONFIGURATION, others), (PULL_SECRET, pulls)):
        if not listed:
            continue
        names = list(dict.fromkeys(each.text for each in listed))
        do = "do not exist" if len(names) > 1 else "does not exist"
        effect = "so the kubelet pulls images without the Secret" if rule is PULL_SECRET else _effect_on_pods(listed)
        near = view.nearest_here(listed[0].name, listed[0].kind) if len(names) == 1 else ""
        fix = f"write `{near}` if that is meant, or create it" if near else f"create {'these' if names[1:] else 'it'}"
        unless = ", or remove the name" if rule is PULL_SECRET else ", or set optional: true"
        message = f"{some_of(names, _MOST_NAMES)} {do} in the namespace, {effect}"
        is_conditional = rule is PULL_SECRET  # the image may be public, or on the node already
        yield rule.problem(listed[0].path, message, f"{fix}{unless}", is_conditional=is_conditional)


def _effect_on_pods(listed: Sequence[ConfigurationReference]) -> str:
    """Return the effect of missing objects or keys. If a volume needs an object or a key, return the effect on the
    volume. The kubelet mounts volumes before it creates containers.
    """
    if any(each.use == "volume" for each in listed):
        return "so the kubelet cannot mount the volume, and the pods stay in ContainerCreating"
    return "so the kubelet creates no container (CreateContainerConfigError)"


def _check_keys(wanted: ConfigurationReference, view: ClusterView) -> Iterator[Problem]:
    """Report the first key that an object lacks. An object without any key is not reported, because a controller or a
    user probably fills the object later.
    """
    existing = view.get_without_noting(wanted.kind, view.namespace, wanted.name)
    filled = FilledObject.of(existing, (), ReadingContext(view.deadline))
    keys = {*filled.data, *filled.string_data, *filled.binary_data}
    absent = ((index, key) for index, key in enumerate(wanted.keys) if key not in keys and not is_placeholder(key))
    index, lacking = next(absent, (0, None))
    if keys and lacking is not None:
        item = ("items", index) if wanted.use == "volume" else ()
        at = (*wanted.path[:-1], *item, "key")
        near = view.nearest(lacking, keys)
        lacks = f"{wanted.text}{view.file_of_object_as_text(existing)} has no key `{lacking}`"
        fix = f"write `{near}`, or add the key" if near else "add the key, or set optional: true"
        yield CONFIGURATION_KEY.problem(at, f"{lacks}, {_effect_on_pods([wanted])}", fix)


CHECKS: Final = (
    Check(
        group="pod-prerequisites",
        run=check_prerequisites,
        kinds=PLACED,
        lookups=_LOOKUPS,
        kinds_in_files=_KINDS_IN_FILES,
        of_made_objects=False,
    ),
)
