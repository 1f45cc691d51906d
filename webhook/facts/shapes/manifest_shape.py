"""Checks the fields of objects in files: unknown fields such as `contianers`, and texts that are not quantities.

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

from webhook.apimachinery.attributes import CRD, NAME_LABEL, POD, GroupVersionKind
from webhook.apimachinery.names import (
    dns1123_label_errors,
    dns1123_subdomain_errors,
    label_fault,
    label_fix,
    subdomain_fault,
    subdomain_fix,
)
from webhook.apimachinery.paths import FieldPath, get, path_as_text
from webhook.apimachinery.quantity import example_quantities, nearest_quantity
from webhook.cluster.known_kinds import is_cluster_scoped
from webhook.facts.kinds import CRON_JOB, JOB, STATEFUL_SET
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.pods.pod_template import is_name_to_fill_in
from webhook.facts.pods.pod_template_scheduling import validate_annotations, validate_labels, validate_selector
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
from webhook.text.wording import counted, did_you_mean, either
from webhook.typed.cluster_objects import ServiceSpec
from webhook.typed.collections import Items
from webhook.typed.fields import Labels, Part
from webhook.typed.objects import Object
from webhook.typed.view import Typed
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
"""The rule `pod-resources/quantity` reports the amounts of containers."""
WRONG_TYPE: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/wrong-type",
    title="A value of the object has the wrong type",
    why="The API server cannot read the object, and refuses it before all other checks.",
    level="warn",
)
SECRET_DATA: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/secret-data",
    title="A value in data of a Secret is not base64",
    why=(
        "The API server decodes each value in data as base64 with padding. If a value is not base64, it refuses the "
        "Secret."
    ),
    source="k8s.io/api v0.36 core/v1/types.go; the package encoding/json of Go",
    level="warn",
)
NAME: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/name",
    title="The API server refuses a name, label, annotation or selector",
    why="The API server limits the characters and the length of names, labels, annotation keys and selectors.",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go and pkg/apis/batch/validation/validation.go",
    function="ValidateObjectMeta, ValidateService, ValidateCronJobCreate",
    level="warn",
)
"""The rule `manifest-shape/pod-value` reports the labels of pods."""
NAMED_KINDS: Final = frozenset(
    (
        *(("", kind) for kind in ("ConfigMap", "LimitRange", "Namespace", "PersistentVolume", "PersistentVolumeClaim")),
        *(("", kind) for kind in ("Pod", "ResourceQuota", "Secret", "Service", "ServiceAccount")),
        *(("apps", kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
        *(("networking.k8s.io", kind) for kind in ("Ingress", "NetworkPolicy")),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("policy", "PodDisruptionBudget"),
        ("storage.k8s.io", "StorageClass"),
        JOB,
        CRON_JOB,
    )
)
_NAMED_BY_LABELS: Final = frozenset((("", "Namespace"), ("", "Service"), STATEFUL_SET))
"""Kinds with names that have no dots."""
_LONGEST_CRON_JOB: Final = 52
"""The controller of CronJobs adds 11 characters for the name of a Job, which has at most 63."""
_MARKS_TO_REPLACE: Final = re.compile(
    r"ENC\[|[{}#]|@[A-Za-z][\w-]*@|^__[A-Za-z][\w-]{0,62}__$|\[[A-Z][A-Z0-9_-]+\]|^kustomize-\(devel\)$"
)
"""Matches a text that SOPS decrypts, marks around a word such as `{job_id}`, `###NAME###` and `__app-name__`, and the
label `managed-by` of a kustomize that states no release. A released kustomize writes its release."""
_LABELS_OF_TEMPLATE: Final = ("spec", "template", "metadata", "labels")
_IGNORED_NAME: Final = re.compile(
    r"(?i:ignor|unused|irrelevant|replace|placeholder|example)|(?<![A-Za-z])(?i:not?_|any|your|change)|Your|Change|^_+$"
    r"|_(?i:name)$"
)
"""Matches a name that a person replaces, and the name of a patch with a target, such as `not_used`."""
_OF_PROGRAMS: Final = "substitution.aigw.run/"
"""The beginning of annotations that the command `aigw run` of Envoy AI Gateway reads in a file and never sends."""
SECRET: Final = frozenset((("", "Secret"),))
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_LINE_ENDS: Final = str.maketrans("", "", "\r\n")
"""Removes the characters that Go skips in base64."""
_ENCRYPTED: Final = ("ENC[", "ref+", "vault:", "op://")
"""The beginnings of texts that SOPS, vals, Bank-Vaults or 1Password replaces."""
_OF_KUBESEC: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}\.[A-Za-z0-9+/]{16}\.[A-Za-z0-9+/]{22}==")
"""Matches a text that kubesec decrypts: data, nonce and tag of AES-GCM, each in base64 (shyiko/kubesec
crypto/aes/cipher.go).
"""
_TO_FILL_IN: Final = re.compile(
    r"(?i:your|replace|change|base_?-?64|encode|example|placeholder|todo|insert|enter|redacted|dummy|fill|secret|here)"
    r"|[A-Z]{2}[_-][A-Z]|^[A-Z]{4,}$|^[.*xX=-]+$|[*xX]{6}|[<>(){}\[\]]|^[A-Za-z0-9+/=]*(?:\.{3,}|…)[A-Za-z0-9+/=]*$"
)
"""Matches a text that a person or a script replaces, or base64 that an author shortened with dots. A password may
match, too. Then the mistake is not reported.
"""
_SHORTEST_FILLER: Final = 8
_MOST_CHARACTERS_OF_FILLER: Final = 3
_KUBERNETES: Final = "Kubernetes 1.36"
"""The release of the types in the package `schema`."""
_AMOUNT_TYPE: Final = "core.v1.ResourceRequirements"
_TEMPLATE_TYPE: Final = "core.v1.PodTemplateSpec"
_POD_TYPE: Final = "core.v1.PodSpec"
_REMOVED_FIELDS: Final = frozenset(
    (("core.v1.PodResourceClaim", "source"), ("core.v1.VolumeResourceRequirements", "claims"))
)
"""Pairs of a type and a field that was removed after Kubernetes 1.28 or 1.30. Clusters may still run these releases."""
_OPEN_GROUPS: Final = frozenset(("serving.knative.dev", "serving.kserve.io"))
"""The groups of kinds that add fields to the fields of a PodSpec."""
_DRA_GROUP: Final = "resource.k8s.io"
"""The group of claims and classes. Rules such as `resource-claims/unknown-field` report its unknown fields."""
_SOPS: Final = "sops"
_UNCHECKED_FIELDS: Final = ("status", _SOPS)
"""Fields that are not checked. Controllers write the status, and SOPS removes `sops` when it decrypts the object."""
_HEADINGS_OF_HELM: Final = frozenset(("HOOKS", "MANIFEST", "NOTES"))
"""The headings that helm prints after an object of a release (helm v3 cmd/helm/status.go). Nobody applies this
output as it is.
"""
_SPEC: Final = ("spec",)
_NAMESPACE: Final = ("namespace",)
_POD_TEMPLATE: Final = ("", "PodTemplate")
_MOST_NAMES: Final = 4
_FIX_OF_TYPE: Final = {"IngressBackend": "write service.name and service.port.number, or service.port.name"}
"""For each type with other field names in an earlier version, the fix for its unknown fields."""
_AUTOSCALER_SPEC: Final = "HorizontalPodAutoscalerSpec"
_UTILIZATION: Final = {"targetCPUUtilizationPercentage": "cpu", "targetMemoryUtilizationPercentage": "memory"}
"""The fields for the use of a resource, and the resource. Version v1 has only the field for cpu, and v2 has metrics."""
_FIELDS_OF_OTHERS: Final = {
    _AUTOSCALER_SPEC: (
        frozenset(("metrics", "behavior")),
        "write apiVersion autoscaling/v2, which has the fields metrics and behavior",
    ),
    "NodeSelectorTerm": (
        frozenset(("preference", "weight")),
        "write the fields of preference in its place, because only preferred terms have it and a weight",
    ),
    "PodAffinityTerm": (
        frozenset(("podAffinityTerm", "weight")),
        "write the fields of podAffinityTerm in its place, because only preferred terms have it and a weight",
    ),
    "WeightedPodAffinityTerm": (
        frozenset(("labelSelector", "namespaceSelector", "namespaces", "topologyKey")),
        "move the fields to podAffinityTerm, because this term is a preferred term",
    ),
}
"""By type, the fields that only a later version or another type has, and the fix."""
_RENAMED_FIELDS: Final = {
    ("StatefulSetSpec", "strategy"): "write updateStrategy, as in every StatefulSet",
    ("DaemonSetSpec", "strategy"): "write updateStrategy, as in every DaemonSet",
    ("DeploymentSpec", "updateStrategy"): "write strategy, as in every Deployment",
    ("DeploymentSpec", "rollingUpdate"): "move `rollingUpdate` to spec.strategy",
    ("StatefulSetSpec", "rollingUpdate"): "move `rollingUpdate` to spec.updateStrategy",
    ("DaemonSetSpec", "rollingUpdate"): "move `rollingUpdate` to spec.updateStrategy",
    ("IngressBackend", "port"): "move `port` into `service`",
    ("NetworkPolicySpec", "ports"): "move `ports` into a rule of spec.ingress or spec.egress",
    ("NetworkPolicySpec", "from"): "move `from` into a rule of spec.ingress",
    ("NetworkPolicySpec", "to"): "move `to` into a rule of spec.egress",
    ("NetworkPolicyEgressRule", "from"): "select the pods that send in spec.podSelector of their own NetworkPolicy",
    ("NetworkPolicyIngressRule", "to"): "select the pods that receive in spec.podSelector of their own NetworkPolicy",
    ("ConfigMap", "type"): "remove the field, or write kind Secret",
    ("Container", "persistentVolumeClaim"): "write persistentVolumeClaim in a volume of the list `volumes` of the pod",
    ("SecurityContext", "add"): "write the list in capabilities.add of the same securityContext",
    ("SecurityContext", "drop"): "write the list in capabilities.drop of the same securityContext",
    ("Scheduling", "nodeClassifier"): "write the labels of the nodes in nodeSelector",
}
"""By type and unknown field, the fix, which names the known field with the same meaning, or the place of the field."""
_FIX_OF_STRATEGY: Final = {
    ("strategy", "Recreate"): "remove the field, because an update deletes each pod before it creates the new pod",
    ("updateStrategy", "OnDelete"): "",
}
"""By field and type of an update strategy that only one kind has: the fix for other kinds; "" if no fix is known."""


class _AutoscalerSpec(Typed):
    """autoscaling/v1 HorizontalPodAutoscalerSpec, whose fields are read by the names in `_UTILIZATION`."""


class _Autoscaler(Object):
    """A HorizontalPodAutoscaler."""

    spec = Part(_AutoscalerSpec)


def check_fields_of_object(subject: Subject) -> Iterator[Problem]:
    """Report unknown fields and invalid quantities of an object outside its pod templates. In kinds without pods, also
    report values of wrong types.
    """
    kind = subject.attributes.kind
    if not subject.attributes.is_plain or subject.group_kind in POD_KIND or kind.group == _DRA_GROUP:
        return
    if subject.group_kind == _POD_TEMPLATE and subject.object.keys() & {"spec", "template"} == {"spec"}:
        return  # a hook of GitHub's runners reads such a file
    defined = None if is_builtin(kind) else _defined_type(subject)
    declared = type_of(kind) if defined is None else defined.declared
    if declared is None:
        return
    has_pods = subject.table.row(kind.group, kind.kind) is not None
    if not has_pods:
        yield from problems_of_wrong_types(subject, WRONG_TYPE)
    is_closed = defined is not None or is_builtin(kind)
    templates = [each.path for each in subject.once(pod_sets).all] if defined else ()
    reader = StrictReader(
        subject.deadline,
        is_closed,
        left_out=(_POD_TYPE, _AMOUNT_TYPE) if has_pods else (_AMOUNT_TYPE,),
        left_out_inside=(_TEMPLATE_TYPE,) if has_pods else (),
        known=_UNCHECKED_FIELDS,
        removed=_REMOVED_FIELDS,
        left_out_at=frozenset(templates),
    )
    yield from _problems_of_reading(reader, subject, declared, _KUBERNETES if defined is None else defined.name)


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


class _Selecting(Object):
    """An object with the fields that have names and labels. Only the selector of a Service is a map of labels."""

    spec = Part(ServiceSpec)


def check_names_of_object(subject: Subject) -> Iterator[Problem]:
    """Report invalid names, labels and annotation keys of an object, and invalid labels in the selector of a Service.

    Every release refuses these names. A name such as `not_used` is not reported, because kustomize ignores the name in
    a patch with a target.
    """
    if not subject.attributes.is_plain or subject.mismatches or subject.template_of is not None:
        return
    obj = subject.typed(_Selecting)
    name, kind = obj.metadata.name, subject.attributes.kind.kind
    needs_label = subject.group_kind in _NAMED_BY_LABELS
    if name and not is_name_to_fill_in(name, obj) and not _IGNORED_NAME.search(name) and not is_to_replace(name):
        if dns1123_label_errors(name) if needs_label else dns1123_subdomain_errors(name):
            fault, fix = (label_fault, label_fix) if needs_label else (subdomain_fault, subdomain_fix)
            article = "an" if kind == "Ingress" else "a"
            message = f"cannot be the name of {article} {kind} because {fault(name)}"
            yield NAME.problem(obj.metadata.path("name"), message, fix(name), name)
        elif subject.group_kind == CRON_JOB and len(name) > _LONGEST_CRON_JOB:
            message = f"has {len(name)} characters, but the name of a CronJob has at most {_LONGEST_CRON_JOB}"
            yield NAME.problem(obj.metadata.path("name"), message, "shorten the name", name)
    if subject.group_kind not in POD_KIND:
        # the API server copies the labels of a template to an object without labels
        if get(subject.object, _LABELS_OF_TEMPLATE) != obj.metadata.json.get("labels"):
            of_server = path_as_text(obj.metadata.path("labels", NAME_LABEL))  # which is set from the name
            yield from _problems_of_labels(each for each in validate_labels(obj.metadata) if each.path != of_server)
        yield from _problems_of_labels(validate_annotations(obj.metadata))
    if subject.group_kind == ("", "Service"):
        yield from _problems_of_labels(validate_selector(obj.spec.selector, obj.spec.path("selector")))


def _problems_of_labels(problems: Iterable[Problem]) -> Iterator[Problem]:
    return (
        structs.replace(problem, code=NAME.id)
        for problem in problems
        if not is_to_replace(problem.found) and _OF_PROGRAMS not in problem.found
    )


def is_to_replace(value: str) -> bool:
    """Return whether a value that the API server refuses has marks around a word that a program replaces. A message may
    have the value between backquotes.
    """
    return _MARKS_TO_REPLACE.search(value.strip("`")) is not None


class _Secret(Object):
    """core/v1 Secret."""

    data = Labels()


def check_data_of_secret(subject: Subject) -> Iterator[Problem]:
    """Report values in data of a Secret that are not base64. No problem shows a value. Texts that a program or a person
    replaces are not reported, and neither are Secrets that SOPS decrypts.
    """
    if subject.attributes.is_plain and _SOPS not in subject.object and _SOPS not in (subject.written or ()):
        problems = [*_values_without_base64(subject.typed(_Secret))]
        for first in problems[:1]:
            yield structs.replace(first, also=tuple(other.path for other in problems[1:]))


def _values_without_base64(secret: _Secret) -> Iterator[Problem]:
    for key, value in secret.data.items():
        secret.charge_search(value)
        if _BASE64.fullmatch(value.translate(_LINE_ENDS)) or is_placeholder(value) or _is_filler(value):
            continue
        if not (value.startswith(_ENCRYPTED) or _OF_KUBESEC.fullmatch(value) or _TO_FILL_IN.search(value)):
            message = "is not base64, so the API server refuses the Secret"
            yield SECRET_DATA.problem(("data", key), message, "write the text in stringData, or encode the value")


def _is_filler(value: str) -> bool:
    """Return whether an author replaced a confidential value by a few repeated characters, as in `cVkcVkcVkc=`."""
    return len(value) >= _SHORTEST_FILLER and len({*value} - {"="}) <= _MOST_CHARACTERS_OF_FILLER


def check_fields_of_pod(subject: Subject) -> Iterator[Problem]:
    """Report unknown fields and invalid quantities of a Pod or a pod template. A decoded Pod has neither, because
    decoding refuses both (schema/sent.py).
    """
    declared, template_of = type_of(POD), subject.template_of
    if declared is None or not subject.attributes.is_plain or subject.is_patch or subject.is_decoded:
        return
    if subject.written is not subject.object or not has_declared_form(subject.object, declared, subject.deadline):
        is_open = template_of is not None and template_of.group in _OPEN_GROUPS
        reader = StrictReader(
            subject.deadline,
            open_at=_SPEC if is_open else None,
            known=_UNCHECKED_FIELDS,
            removed=_REMOVED_FIELDS,
            left_out=(),
            without_amounts=(_AMOUNT_TYPE,),
        )
        yield from _problems_of_reading(reader, subject, declared, _KUBERNETES)


def _problems_of_reading(reader: StrictReader, subject: Subject, declared: Type, schema: str) -> Iterator[Problem]:
    """Yield the problems of unknown fields, then the problems of texts that are no quantities.

    Unknown fields without a value are only in the object as the user wrote it.
    """
    reader = structs.replace(reader, written=subject.object if subject.written is None else subject.written)
    reading = reader.read(subject.object, declared)
    fields = Items[UndeclaredFields]((), subject.deadline)
    if subject.written is not subject.object:
        fields = fields.of(structs.replace(reader, only_nulls=True).read(subject.written, declared).fields)
    indented = {(each.at, name.indented_with) for each in fields.of(reading.fields) for name in each.fields}
    for unknown in (*fields.of(reading.fields), *_without(indented, fields)):
        yield from _problems_of_fields(unknown, subject, schema)
    for at, value in fields.of(reading.quantities):
        fix = did_you_mean(nearest_quantity(value), f"write a number such as {example_quantities(at)}")
        yield QUANTITY.problem(at, "must be a quantity", fix, value)


def _without(
    reported: Collection[tuple[FieldPath, str]], empty: Iterable[UndeclaredFields]
) -> Iterator[UndeclaredFields]:
    """Yield the objects with their empty unknown fields, except the fields in `reported`."""
    for unknown in empty:
        yield structs.replace(
            unknown, fields=[each for each in unknown.fields if (unknown.at, each.name) not in reported]
        )


def _problems_of_fields(unknown: UndeclaredFields, subject: Subject, schema: str) -> Iterator[Problem]:
    """Yield the problems of one object's unknown fields; `schema` names the release or definition that declares the
    fields.

    A field that is similar to a known field, or that belongs to another object, has its own problem. All other fields
    share one problem. At the top of a document without metadata, the other fields are not reported, because the
    document is probably not an object of Kubernetes.
    """
    others: list[UndeclaredField] = []
    moved: dict[FieldPath, list[str]] = {}
    indented: dict[str, list[UndeclaredField]] = {}
    for each in Items(unknown.fields, subject.deadline):
        if not unknown.at and each.name in _HEADINGS_OF_HELM:
            continue
        if each.has_fields_of_object:
            fix = f"move the fields inside `{each.name}` to the object itself, and remove `{each.name}`"
            yield UNKNOWN.problem((*unknown.at, each.name), _message(unknown, schema), fix)
        elif each.indented_with:
            indented.setdefault(each.indented_with, []).append(each)
        elif fix := _fix_of_renamed_field(unknown, each.name, subject):
            yield UNKNOWN.problem((*unknown.at, each.name), _message(unknown, schema), fix)
        elif each.place is not None and not each.nearest:
            moved.setdefault(each.place, []).append(each.name)
        elif fix := _fix(each, subject.template_of):
            yield UNKNOWN.problem((*unknown.at, each.name), _message(unknown, schema), fix)
        else:
            others.append(each)
    for above, below in indented.items():
        together = (above, *(each.name for each in below))
        whole = "the object itself" if subject.template_of is None else "the pod template"
        target = path_as_text(below[0].place or ()) or whole
        message, _ = _message_and_fix_of_moved_fields(unknown, target, together, schema)
        yield UNKNOWN.problem((*unknown.at, above), message, f"move `{above}`, with the fields after it, to {target}")
    for place, names in moved.items():
        at = (*unknown.at, names[0]) if len(names) == 1 else unknown.at
        owner = "" if subject.template_of is None else " of the pod template"
        target = f"{path_as_text(place) or 'the object itself'}{owner}"
        yield UNKNOWN.problem(at, *_message_and_fix_of_moved_fields(unknown, target, names, schema))
    if not others or (not unknown.at and "metadata" not in subject.object):
        return
    names, sources = [each.name for each in others], others[0].sources
    what = f"`{names[0]}`" if len(names) == 1 else "the fields"
    inside = f"set {what} inside {either(sources)}" if sources else ""
    if len(names) == 1:
        fix = _fix_of_version(unknown.type_name, names, subject) or inside or "remove the field"
        yield UNKNOWN.problem((*unknown.at, names[0]), _message(unknown, schema), fix)
    else:
        message = f"{names_in_text(names)} {_message(unknown, schema, 'are not fields', 'the fields')}"
        remove = "remove the fields, or move them to the object that has them"
        fix = _fix_of_version(unknown.type_name, names, subject) or inside or remove
        yield UNKNOWN.problem(unknown.at, message, fix)


def _message_and_fix_of_moved_fields(
    unknown: UndeclaredFields, target: str, names: Sequence[str], schema: str
) -> tuple[str, str]:
    """Return the message and the fix of fields that another object should have. One wrong indentation can move several
    fields.
    """
    if len(names) == 1:
        return _message(unknown, schema), f"move `{names[0]}` to {target}"
    message = f"{names_in_text(names)} {_message(unknown, schema, 'are not fields', 'the fields')}"
    return message, f"move the fields to {target}"


def _fix_of_version(type_name: str, names: Collection[str], subject: Subject) -> str:
    """Return the fix for unknown fields of a type that has other fields in another version; "" without a fix.

    A later version may also lack a field that the object has.
    """
    fields, fix = _FIELDS_OF_OTHERS.get(type_name, ((), ""))
    if not fields or not set(names) <= fields:
        return _FIX_OF_TYPE.get(type_name, "")
    used = next(filter(subject.typed(_Autoscaler).spec.has, _UTILIZATION), "")
    return f"{fix}, and {_metric_in_place_of(used, subject)} in place of {used}" if used else fix


def _metric_in_place_of(name: str, subject: Subject) -> str:
    """Return a text about the metric that stands in autoscaling/v2 for a field of `_UTILIZATION`."""
    value = subject.typed(_Autoscaler).spec.json.get(name)
    percent = value if isinstance(value, int) else "N"
    target = f"{{type: Utilization, averageUtilization: {percent}}}"
    return f"write {{type: Resource, resource: {{name: {_UTILIZATION[name]}, target: {target}}}}} in spec.metrics"


def _fix_of_renamed_field(unknown: UndeclaredFields, name: str, subject: Subject) -> str:
    """Return the fix for a field that has another name in this kind, and for a namespace outside the metadata; "" for
    other fields. The metadata has the namespace of the request if the author wrote no namespace there.
    """
    if (*unknown.at, name) == _NAMESPACE and subject.template_of is None:
        is_repeated = subject.object.get(name) in (None, subject.attributes.namespace)
        is_of_no_use = is_repeated or is_cluster_scoped(subject.attributes.kind)
        return "remove the field" if is_of_no_use else "move `namespace` to metadata"
    if unknown.type_name == _AUTOSCALER_SPEC and name in _UTILIZATION:
        is_first = subject.attributes.kind.version == "v1"
        return f"{'write apiVersion autoscaling/v2, and ' if is_first else ''}{_metric_in_place_of(name, subject)}"
    fix = _RENAMED_FIELDS.get((unknown.type_name, name), "")
    strategy = str(get(subject.object, (*unknown.at, name, "type")))
    return _FIX_OF_STRATEGY.get((name, strategy), fix) if fix else ""


def _fix(unknown: UndeclaredField, template_of: GroupVersionKind | None) -> str:
    """Return the fix for a field without a known place in the object; "" if no fix is known."""
    if unknown.nearest:
        return did_you_mean(unknown.nearest, "")
    spec = type_at_path(type_of(template_of), _SPEC) if template_of is not None else None
    if template_of is not None and isinstance(spec, Fields) and unknown.name in spec.fields:
        return f"set `{unknown.name}` in the spec of the {template_of.kind} instead"
    return ""


def names_in_text(names: Sequence[str]) -> str:
    """Return the first names in quotes, and the number of the others."""
    more = f" and {counted(len(names) - _MOST_NAMES, 'other')}" if len(names) > _MOST_NAMES else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_NAMES]) + more


def _message(unknown: UndeclaredFields, schema: str, what: str = "is not a field", dropped: str = "the field") -> str:
    kind = unknown.type_name or "this object"
    return f"{what} of {kind} in {schema}, so kubectl refuses the object, and other clients may drop {dropped}"
