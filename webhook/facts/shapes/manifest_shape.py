"""Checks of objects in files: unknown fields such as `contianers`, texts that are not quantities, mounts, and ports.

In kinds without pods, values of wrong types are reported too. The checks read objects as a user wrote them. Recorded
reviews are not checked, because an API server drops unknown fields and refuses the other mistakes before it calls
webhooks. The API server may also be newer than the types here. The fields of a custom kind are known if the files have
its CustomResourceDefinition. Otherwise only parts with a type of Kubernetes are known, such as a pod template.

Source: k8s.io/apimachinery v0.36 pkg/runtime/serializer/json/json.go (strict decoding, which kubectl asks for unless
`--validate` is off) and pkg/api/resource/quantity.go.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from webhook.apimachinery.attributes import CRD, POD, GroupVersionKind
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import FieldPath, get, parse_path, path_as_text
from webhook.apimachinery.quantity import nearest_quantity
from webhook.facts.kinds import CRON_JOB, JOB
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.shapes.object_shape import POD_KIND, problems_of_wrong_types
from webhook.facts.subject import Subject
from webhook.patch.schema import is_builtin
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.schema import type_of
from webhook.schema.decode import has_declared_form
from webhook.schema.kinds import type_at_path, type_of_defined_kind
from webhook.schema.types import Fields, Type
from webhook.schema.undeclared import StrictReader, UndeclaredField, UndeclaredFields
from webhook.text.caches import IdentityKey
from webhook.text.similar_names import nearest_name
from webhook.text.wording import counted, did_you_mean
from webhook.typed.cluster_objects import Service
from webhook.typed.collections import Items
from webhook.typed.fields import Part, Parts
from webhook.typed.jobs import CronJob, Job, JobSpec
from webhook.typed.objects import Object
from webhook.typed.pods import Container, Pod, PodSpec, PodTemplate
from webhook.typed.view import Typed
from webhook.typed.volumes import VolumeMount
from webhook.yamltext.placeholders import is_placeholder

MANIFEST_SHAPE: Final = RuleGroup(
    "manifest-shape",
    refused_by="the API server",
    source="k8s.io/apimachinery v0.36 pkg/runtime/serializer/json/json.go",
    fails="create",
)
"""Values in files that an API server refuses, and fields that it drops, before it calls webhooks."""
UNKNOWN: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/unknown-field",
    title="The field does not exist in Kubernetes",
    why=(
        "kubectl refuses the object unless validation is off. For other clients the API server drops the field, "
        "sometimes with a warning."
    ),
    refused_by="kubectl; the API server drops the field",
    level="warn",
    fails="silent",
)
QUANTITY: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/quantity",
    title="The value is not a quantity",
    why="The API server cannot read the object, and refuses it before all other checks.",
    source="k8s.io/apimachinery v0.36 pkg/api/resource/quantity.go",
    function="ParseQuantity",
    level="warn",
)
"""For amounts of containers, see `pod-resources/quantity`."""
WRONG_TYPE: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/wrong-type",
    title="A value of the object has the wrong type",
    why="The API server cannot read the object, and refuses it before all other checks.",
    level="warn",
)
MOUNT_PATH: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/mount-path",
    title="Two volumes are mounted at one path",
    why="The API server refuses the object, because one mount would hide the other.",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="ValidateVolumeMounts",
    level="warn",
)
"""In templates of custom kinds, `pod-template/mount-path` reports such mounts."""
VOLUME_EXISTS: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/volume-exists",
    title="A container mounts a volume that its pod does not have",
    why="The API server refuses the object, because each mount needs a volume with its name.",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="ValidateVolumeMounts",
    level="warn",
)
RESTART_POLICY: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/restart-policy",
    title="The kind does not allow this restartPolicy",
    why=(
        "Pods of a Deployment, StatefulSet, DaemonSet or ReplicaSet always restart. Pods of a Job end, so the API "
        "server refuses Always, the default."
    ),
    source="k8s.io/kubernetes v1.36 pkg/apis/apps/validation/validation.go",
    function="ValidatePodTemplateSpecForReplicaSet",
    level="warn",
)
IMAGE_NAME: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/image-name",
    title="The name of an image has capital letters",
    why="No registry has the image. The kubelet refuses the name, or reads its first part as the host of a registry.",
    refused_by="the kubelet, or the pull of the image",
    source="github.com/distribution/reference v0.6.0 normalize.go",
    function="ParseNormalizedNamed",
    level="warn",
    fails="start",
)
_EXPANSION: Final = (
    "https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/"
)
PATH_VARIABLE: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/path-variable",
    title="PATH keeps the text $PATH, so the programs of the image are not found",
    why=(
        "Kubernetes replaces only `$(NAME)`, and only variables of the Pod. The value replaces the PATH of the image, "
        "with directories such as /usr/bin."
    ),
    refused_by="the container runtime, which does not find the command",
    source=_EXPANSION,
    level="warn",
    fails="start",
)
LIBRARY_PATH: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/library-path",
    title="The variable keeps the text of its own name, so the value of the image is lost",
    why=(
        "Kubernetes replaces only `$(NAME)`, and only variables of the Pod. The container works if the image does not "
        "set the variable."
    ),
    source=_EXPANSION,
    level="advice",
    fails="silent",
)
COMPLETION_INDEX: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/completion-index",
    title="A Job that is not Indexed reads JOB_COMPLETION_INDEX",
    why=(
        "Kubernetes sets JOB_COMPLETION_INDEX only in the pods of an Indexed Job. In other pods the reference stays a "
        "text, and a shell reads an empty value."
    ),
    refused_by="nothing; the pods have no index",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode",
    level="warn",
    fails="start",
)
SERVICE_PORT: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/service-port",
    title="A port of a Service is not a port number",
    why=(
        "A port is a number from 1 to 65535. The API server reads a port without a value as 0, and refuses the Service."
    ),
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="validateServicePort",
    level="warn",
)
ONLY_READ: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/volume-only-read",
    title="No container can write to the emptyDir",
    why="An emptyDir is empty when the pod starts. If all its mounts are readOnly, the volume stays empty.",
    refused_by="nothing; the containers see an empty folder",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
    level="warn",
    fails="silent",
)
_TO_FILL_IN: Final = re.compile(
    r"(?i:your|user|name|example|registry|account|project|image|repo|replace|change)|(^|/)[A-Z]+([_-][A-Z]+)*(/|$)"
)
"""The name of an image that a person or a script fills in, such as `YOUR_REGISTRY/app` or `yourName/app`."""
_OWN_VALUE: Final = re.compile(r"\$\$?(\w{1,40})|\$\$?[{(](\w{1,40})[})]")
"""Matches how authors write the earlier value of a variable: `$PATH`, `${PATH}` or `$(PATH)`."""
_PATHS: Final = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Variables that list folders, and that images set."""
_PROGRAMS: Final = frozenset(("/bin", "/usr/bin"))
_USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SETS_PATH: Final = re.compile(r"\bPATH=|profile\b|\.bashrc\b|--login\b|sh -[a-z]{0,3}l")
"""The command of a container that sets PATH itself, or of a shell that reads a file that sets PATH."""
_SHELL: Final = re.compile(r"/(?:[\w.]+/){0,4}(?:ba|da|a|z)?sh")
_INDEX: Final = "JOB_COMPLETION_INDEX"
_READS_INDEX: Final = re.compile(rf"(?<![$\\])\$(?:{_INDEX}\b|\{{{_INDEX}\}}|\({_INDEX}\))")
"""Matches `$JOB_COMPLETION_INDEX`, `${JOB_COMPLETION_INDEX}` and `$(JOB_COMPLETION_INDEX)`."""
_HANDLES_NO_INDEX: Final = re.compile(rf"{_INDEX}(?:[:+?-]|=)|-[nzv] \"?\$?\{{?{_INDEX}")
"""A shell command that sets the index, has a default for it, or asks whether the index is set."""
_WITHOUT_INDEX: Final = ("", "NonIndexed")
_EMPTY_DIR: Final = "emptyDir"
_HUGE_PAGES: Final = "HugePages"
_KUBERNETES: Final = "Kubernetes 1.36"
"""The types in the package `schema` are from this release."""
_AMOUNTS: Final = "core.v1.ResourceRequirements"
_TEMPLATES: Final = ("core.v1.PodTemplateSpec", "core.v1.PodSpec")
_REMOVED: Final = frozenset((("core.v1.PodResourceClaim", "source"), ("core.v1.VolumeResourceRequirements", "claims")))
"""Fields, by type, that were removed after Kubernetes 1.30 and 1.28. Clusters may still run these releases."""
_OPEN_GROUPS: Final = frozenset(("serving.knative.dev", "serving.kserve.io"))
"""The groups of kinds that have own fields next to the fields of a PodSpec."""
_RAY: Final = "ray.io"
"""The group of kinds with containers that run a login shell, which sets PATH."""
_DRA: Final = "resource.k8s.io"
"""The group of claims and classes. Rules such as `resource-claims/unknown-field` report its unknown fields."""
_WORKLOADS: Final = frozenset(
    (
        *(("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
        JOB,
        ("", "ReplicationController"),
    )
)
"""Kinds with a pod template that the API server checks. Controllers of other kinds may add volumes to templates."""
_OF_ENDING_PODS: Final = frozenset((JOB, CRON_JOB))
_ALWAYS: Final = "Always"
_SERVICE: Final = ("", "Service")
_LAST_PORT: Final = 65535
_VOLUMES: Final = "volumes"
_NO_VOLUME: Final = "is not the name of a volume of the pod"
_UNCHECKED_FIELDS: Final = ("status", "sops")
"""Fields that are not checked. Controllers write the status, and SOPS removes `sops` when it decrypts the object."""
_SPEC: Final = ("spec",)
_MAPS: Final = frozenset(("data", "stringData", "labels", "annotations"))
"""Fields with keys that users choose."""
_MOST_NAMED: Final = 4
_REPLACED: Final = {"IngressBackend": "write service.name and service.port.number, or service.port.name"}
"""For each type with other field names in an earlier version, the fix for its unknown fields."""
_RENAMED: Final = {
    ("StatefulSetSpec", "strategy"): "write updateStrategy, as in every StatefulSet",
    ("DaemonSetSpec", "strategy"): "write updateStrategy, as in every DaemonSet",
    ("DeploymentSpec", "updateStrategy"): "write strategy, as in every Deployment",
    ("Scheduling", "nodeClassifier"): "write the labels of the nodes in nodeSelector",
}
"""For types and their unknown fields, the field with the same meaning."""
_OF_ONE_KIND: Final = {
    ("strategy", "Recreate"): "remove the field, because an update deletes each pod before it creates the new pod",
    ("updateStrategy", "OnDelete"): "",
}
"""For types of update strategies that the other kind does not have, the fix, or "" for the usual fix."""


class _WorkloadSpec(Typed):
    """The spec of a workload, with the claims of a StatefulSet."""

    template = Part(PodTemplate)
    volume_claim_templates = Parts(Object)


class _Workload(Object):
    """A kind of `_WORKLOADS`."""

    spec = Part(_WorkloadSpec)


def check_fields_of_object(subject: Subject) -> Iterator[Problem]:
    """Report unknown fields and invalid quantities of an object outside its pod templates. In kinds without pods, also
    report values of wrong types.
    """
    kind = subject.attributes.kind
    if not subject.attributes.is_plain or subject.group_kind in POD_KIND or kind.group == _DRA:
        return
    defined = None if is_builtin(kind) else _defined_type(subject)
    declared = type_of(kind) if defined is None else defined.declared
    if declared is None:
        return
    has_pods = subject.table.row(kind.group, kind.kind) is not None
    if not has_pods:
        yield from _join_values_of_maps(problems_of_wrong_types(subject, WRONG_TYPE))
    left_out = (*_TEMPLATES, _AMOUNTS) if has_pods else (_AMOUNTS,)
    is_closed = defined is not None or is_builtin(kind)
    templates = [each.path for each in subject.once(pod_sets).all] if defined else ()
    reader = StrictReader(
        subject.deadline,
        is_closed,
        left_out,
        known=_UNCHECKED_FIELDS,
        removed=_REMOVED,
        left_out_at=frozenset(templates),
    )
    yield from _problems_of_reading(reader, subject, declared, _KUBERNETES if defined is None else defined.name)
    if subject.group_kind == _SERVICE:
        yield from _problems_of_service_ports(subject)
    elif subject.group_kind == CRON_JOB:
        job = subject.typed(CronJob).spec.job_template.spec
        pod = job.template.spec
        yield from (*_problems_of_mounts(pod, ()), *_problems_of_restart_policy(subject, pod))
        yield from _problems_of_completion_index(job)
    elif subject.group_kind in _WORKLOADS:
        spec = subject.typed(_Workload).spec
        pod = spec.template.spec
        yield from _problems_of_mounts(pod, {each.name for each in spec.volume_claim_templates})
        yield from _problems_of_restart_policy(subject, pod)
        if subject.group_kind == JOB:
            yield from _problems_of_completion_index(subject.typed(Job).spec)


def _problems_of_service_ports(subject: Subject) -> Iterator[Problem]:
    """Yield a problem for the first port of a Service that is not a port number. A chart without a value for the port
    writes `port:` without a number, which the API server reads as 0.
    """
    for port in subject.typed(Service).spec.ports:
        if not 0 < (port.port or 0) <= _LAST_PORT and not port.is_omitted("port"):
            yield SERVICE_PORT.problem(
                port.path("port"), "must be a number from 1 to 65535", "set the number of the port"
            )
            return


class _DefinedType(NamedTuple):
    """The type of a custom kind, and the name of its CustomResourceDefinition for messages."""

    declared: Type
    name: str


def _defined_type(subject: Subject) -> _DefinedType | None:
    """Return the type of a custom kind; None if the files have no CustomResourceDefinition with the type."""
    attributes, view = subject.attributes, subject.cluster_view()
    name = f"{attributes.resource.resource}.{attributes.kind.group}"
    definition = view.get_without_noting(CRD, "", name)
    if definition is None:
        return None
    version = attributes.kind.version
    declared = view.once(
        (_defined_type, IdentityKey(definition), version),
        lambda: type_of_defined_kind(definition, version, subject.deadline),
    )
    return None if declared is None else _DefinedType(declared, view.name_with_file(CRD, name))


def _problems_of_mounts(pod: PodSpec, claims: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each mount with a misspelt volume, and one for all other volumes that the pod does not have.

    If a container has no image, the file has only a patch, and nothing is reported. `claims` are the names of claims
    that a controller adds as volumes.
    """
    containers = [*pod.all_containers()]
    mounts = [mount for container in containers for mount in container.volume_mounts]
    if not mounts:
        return
    names = {*claims, *(volume.name for volume in pod.volumes)}
    if not all(container.image for container in containers) or any(map(is_placeholder, names)):
        return
    missing: dict[str, VolumeMount] = {}
    for mount in mounts:
        if mount.name and mount.name not in names and not is_placeholder(mount.name):
            missing.setdefault(mount.name, mount)
    others = []
    for name, mount in Items([*missing.items()], pod.reading.deadline):
        if near := nearest_name(name, Items([*names], pod.reading.deadline)):
            fix = did_you_mean(near, "")
            yield VOLUME_EXISTS.problem(mount.path("name"), _NO_VOLUME, fix, name, needs=_VOLUMES)
        else:
            others.append(name)
    if others:
        more = f" (likewise {_names(others[1:])})" if others[1:] else ""
        path = missing[others[0]].path("name")
        fix = "add the volume, or remove the mount"
        yield VOLUME_EXISTS.problem(path, f"{_NO_VOLUME}{more}", fix, others[0], needs=_VOLUMES)


def _problems_of_completion_index(job: JobSpec) -> Iterator[Problem]:
    """Yield the first place in each container where a Job that is not Indexed reads the index of its pod.

    If a container has no image, the file has only a patch, and nothing is reported.
    """
    containers = [*job.template.spec.all_containers()]
    if (
        job.completion_mode not in _WITHOUT_INDEX
        or job.is_omitted("completionMode")
        or not all(each.image for each in containers)
    ):
        return
    for container in containers:
        if container.env_from or _INDEX in container.environment.names:
            continue
        words = [
            *((container.path("command", number), word) for number, word in enumerate(container.command)),
            *((container.path("args", number), word) for number, word in enumerate(container.args)),
        ]
        if any(_HANDLES_NO_INDEX.search(word) for _, word in words):
            continue
        texts = [*((variable.path("value"), variable.value) for variable in container.env), *words]
        read = next(((at, match) for at, text in texts if (match := _READS_INDEX.search(text))), None)
        if read is not None:
            message = "is not set, because the Job is not Indexed"
            fix = "set completionMode: Indexed and completions in the spec of the Job"
            yield COMPLETION_INDEX.problem(read[0], message, fix, read[1][0], needs="completionMode")


def _problems_of_restart_policy(subject: Subject, pod: PodSpec) -> Iterator[Problem]:
    """Yield a problem for a restartPolicy that the kind does not allow. If a container has no image, the file has only
    a patch, and nothing is reported.
    """
    policy, containers = pod.restart_policy, [*pod.containers]
    is_ending = subject.group_kind in _OF_ENDING_PODS
    is_allowed = (policy or _ALWAYS) != _ALWAYS if is_ending else policy in ("", _ALWAYS)
    if is_allowed or is_placeholder(policy) or pod.is_omitted("restartPolicy") or not containers:
        return
    if not all(container.image for container in containers):
        return
    kind, path = subject.attributes.kind.kind, pod.path("restartPolicy")
    if is_ending:
        message = f"must be OnFailure or Never in a {kind}; Always is also the default"
        yield RESTART_POLICY.problem(path, message, "set OnFailure or Never", policy, needs="restartPolicy")
    else:
        message = f"must be Always in a {kind}, because the pods of this kind always restart"
        yield RESTART_POLICY.problem(path, message, "remove the field, or use a Job for pods that end", policy)


def _join_values_of_maps(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems.

    The values of one map that have the same mistake, such as numbers in `labels`, get one problem.
    """
    joined: dict[tuple[object, ...], list[Problem]] = {}
    for problem in problems:
        *above, last = parse_path(problem.path)
        key = (*above, problem.message, problem.fix) if above and above[-1] in _MAPS else (problem.path, last)
        joined.setdefault(key, []).append(problem)
    for first, *others in joined.values():
        yield structs.replace(first, also=tuple(other.path for other in others)) if others else first


def check_fields_of_pod(subject: Subject) -> Iterator[Problem]:
    """Report unknown fields and invalid quantities of a Pod or a pod template."""
    declared, template_of = type_of(POD), subject.template_of
    if declared is None or not subject.attributes.is_plain or subject.is_patch:
        return
    if subject.written is not subject.object or not has_declared_form(subject.object, declared, subject.deadline):
        is_open = template_of is not None and template_of.group in _OPEN_GROUPS
        reader = StrictReader(
            subject.deadline,
            open_at=_SPEC if is_open else None,
            known=_UNCHECKED_FIELDS,
            removed=_REMOVED,
            left_out=(),
            without_amounts=(_AMOUNTS,),
        )
        yield from _problems_of_reading(reader, subject, declared, _KUBERNETES)
    yield from _problems_of_image_names(subject.typed(Pod).spec)
    if template_of is None or template_of.group != _RAY:
        yield from _problems_of_path_variables(subject.typed(Pod).spec)
    if template_of is None or is_builtin(template_of):
        yield from _volumes_without_writer(subject)
        yield from _mounts_at_one_path(subject)
    if template_of is None:
        yield from _problems_of_mounts(subject.typed(Pod).spec, ())


def _problems_of_image_names(pod: PodSpec) -> Iterator[Problem]:
    """Yield images with capital letters in their names. The host of a registry may have capital letters."""
    for container in pod.all_containers():
        name = parse_image_name(container.image).repository
        if name != name.lower() and not is_placeholder(container.image) and not _TO_FILL_IN.search(name):
            message = "has capital letters in its name, so no node can pull the image"
            fix = "write the name in lower-case letters, as the registry has it"
            yield IMAGE_NAME.problem(container.path("image"), message, fix, container.image)


def _problems_of_path_variables(pod: PodSpec) -> Iterator[Problem]:
    """Yield variables that list folders and refer to their own value in the image. Kubernetes does not know this value.

    If the image is a placeholder, a program fills in the template. The program may replace the reference too.
    """
    for container in pod.all_containers():
        names = container.environment.names
        if container.env_from or is_placeholder(container.image):
            continue
        for name in _PATHS:
            if names.count(name) != 1:
                continue
            variable = container.env[names.index(name)]
            parts = variable.value.split(":")
            own = next((part for part in parts if _refers_to(part, name)), "")
            if not own:
                continue
            others = [part for part in parts if part != own]
            if name != "PATH":
                message = "stays a text because Kubernetes does not replace it, so the value of the image is lost"
                fix = "write all folders, or set the variable in a shell of the command"
                yield LIBRARY_PATH.problem(variable.path("value"), message, fix, own)
            elif not _finds_programs(container, others):
                message = "stays a text because Kubernetes does not replace it, so PATH has no folder of the image"
                fix = f"write {':'.join(_USUAL_PATH if part == own else part for part in parts)}"
                yield PATH_VARIABLE.problem(variable.path("value"), message, fix, own)


def _refers_to(part: str, name: str) -> bool:
    reference = _OWN_VALUE.fullmatch(part)
    return reference is not None and name in reference.groups()


def _finds_programs(container: Container, folders: Sequence[str]) -> bool:
    """Return whether a container may find its programs in these folders, sets PATH itself, or runs one program by its
    path.
    """
    if any(folder.rstrip("/") in _PROGRAMS or "$" in folder for folder in folders) or container.runs(_SETS_PATH):
        return True
    program = container.command[0] if container.command else ""
    return program.startswith("/") and not _SHELL.fullmatch(program)


def _volumes_without_writer(subject: Subject) -> Iterator[Problem]:
    """Yield a problem for each emptyDir of which every mount is readOnly. An annotation that names the volume may add a
    container that writes. A container without an image is a patch, and may get more mounts.
    """
    pod = subject.typed(Pod).spec
    volumes = [each for each in pod.volumes if each.source == _EMPTY_DIR]
    containers = [*pod.all_containers()] if volumes else []
    if not all(each.image and not each.is_omitted("volumeMounts") for each in containers):
        return
    mounts = [mount for container in containers for mount in container.volume_mounts]
    if any(is_placeholder(mount.name) for mount in mounts):
        return
    mounted, written = {each.name for each in mounts}, {each.name for each in mounts if not each.read_only}
    annotations = "\n".join(subject.metadata.annotations.values())
    for volume in volumes:
        if volume.name not in mounted or volume.name in written or volume.empty_dir.medium.startswith(_HUGE_PAGES):
            continue
        if volume.name not in annotations:
            message = "is an emptyDir that every container mounts with readOnly, so the volume stays empty"
            fix = "remove readOnly from the mount that writes, or use the volume that has the files"
            yield ONLY_READ.problem(volume.at, message, fix, volume.name)


def _mounts_at_one_path(subject: Subject) -> Iterator[Problem]:
    for container in subject.typed(Pod).spec.all_containers():
        for mount, is_repeated in container.mounts_with_repetition():
            if is_repeated and not is_placeholder(mount.mount_path):
                message = "is also the path of a mount before this one in the container, which the API server refuses"
                fix = "mount each volume at a different path"
                yield MOUNT_PATH.problem(mount.path("mountPath"), message, fix, mount.mount_path)


def _problems_of_reading(reader: StrictReader, subject: Subject, declared: Type, schema: str) -> Iterator[Problem]:
    """Yield the problems of unknown fields, then the problems of texts that are no quantities.

    Unknown fields without a value are only in the object as the user wrote it.
    """
    reader = structs.replace(reader, written=subject.object if subject.written is None else subject.written)
    reading = reader.read(subject.object, declared)
    fields = Items[UndeclaredFields]((), subject.deadline)
    if subject.written is not subject.object:
        fields = fields.of(structs.replace(reader, only_nulls=True).read(subject.written, declared).fields)
    for unknown in (*fields.of(reading.fields), *fields):
        yield from _problems_of_fields(unknown, subject, schema)
    for at, value in fields.of(reading.quantities):
        fix = did_you_mean(nearest_quantity(value), "write a number such as 1, 500m or 4Gi")
        yield QUANTITY.problem(at, "must be a quantity", fix, value)


def _problems_of_fields(unknown: UndeclaredFields, subject: Subject, schema: str) -> Iterator[Problem]:
    """Yield the problems of one object's unknown fields; `schema` names the release or definition that declares the
    fields.

    A field with a similar name, or with another place, has its own problem. All other fields share one problem. They
    are not reported at the top of a document without metadata, which is probably not an object of Kubernetes.
    """
    others = []
    moved: dict[FieldPath, list[str]] = {}
    for each in Items(unknown.fields, subject.deadline):
        if each.has_fields_of_object:
            fix = f"move the fields inside `{each.name}` to the object itself, and remove `{each.name}`"
            yield UNKNOWN.problem((*unknown.at, each.name), _message(unknown, schema), fix)
        elif fix := _fix_of_renamed_field(unknown, each.name, subject):
            yield UNKNOWN.problem((*unknown.at, each.name), _message(unknown, schema), fix)
        elif each.place is not None and not each.nearest:
            moved.setdefault(each.place, []).append(each.name)
        elif fix := _fix(each, subject.template_of):
            yield UNKNOWN.problem((*unknown.at, each.name), _message(unknown, schema), fix)
        else:
            others.append(each.name)
    for place, names in moved.items():
        at = (*unknown.at, names[0]) if len(names) == 1 else unknown.at
        owner = "" if subject.template_of is None else " of the pod template"
        target = f"{path_as_text(place) or 'the object itself'}{owner}"
        yield UNKNOWN.problem(at, *_message_and_fix_of_moved_fields(unknown, target, names, schema))
    if not others or (not unknown.at and "metadata" not in subject.object):
        return
    if len(others) == 1:
        fix = _REPLACED.get(unknown.type_name, "remove the field")
        yield UNKNOWN.problem((*unknown.at, others[0]), _message(unknown, schema), fix)
    else:
        message = f"{_names(others)} {_message(unknown, schema, 'are not fields', 'the fields have')}"
        fix = _REPLACED.get(unknown.type_name, "remove the fields, or move them to the object that has them")
        yield UNKNOWN.problem(unknown.at, message, fix)


def _message_and_fix_of_moved_fields(
    unknown: UndeclaredFields, target: str, names: Sequence[str], schema: str
) -> tuple[str, str]:
    """Return the message and the fix of fields that another object should have. A wrong indentation moves several
    fields.
    """
    if len(names) == 1:
        return _message(unknown, schema), f"move `{names[0]}` to {target}"
    message = f"{_names(names)} {_message(unknown, schema, 'are not fields', 'the fields have')}"
    return message, f"move the fields to {target}"


def _fix_of_renamed_field(unknown: UndeclaredFields, name: str, subject: Subject) -> str:
    """Return the fix for a field that has another name in this kind; "" for other fields."""
    fix = _RENAMED.get((unknown.type_name, name), "")
    strategy = str(get(subject.object, (*unknown.at, name, "type")))
    return _OF_ONE_KIND.get((name, strategy), fix) if fix else ""


def _fix(unknown: UndeclaredField, template_of: GroupVersionKind | None) -> str:
    """Return the fix for a field without a known place in the object; "" if no fix is known."""
    if unknown.nearest:
        return did_you_mean(unknown.nearest, "")
    spec = type_at_path(type_of(template_of), _SPEC) if template_of is not None else None
    if template_of is not None and isinstance(spec, Fields) and unknown.name in spec.fields:
        return f"set `{unknown.name}` in the spec of the {template_of.kind} instead"
    return ""


def _names(names: Sequence[str]) -> str:
    more = f" and {counted(len(names) - _MOST_NAMED, 'other')}" if len(names) > _MOST_NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_NAMED]) + more


def _message(
    unknown: UndeclaredFields, schema: str, what: str = "is not a field", effect: str = "the field has"
) -> str:
    kind = unknown.type_name or "this object"
    return f"{what} of {kind} in {schema}, so kubectl refuses the object, or {effect} no effect"
