"""Policies about objects of Kubernetes: policies that print each field of an object, and policies like those of a
site.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind, plural_of_kind

ABSENT: Final = "'~'"
OF_SERVER: Final = frozenset(
    (
        *("uid", "creationTimestamp", "generation", "managedFields", "resourceVersion", "finalizers"),
        *("deprecated.daemonset.template.generation", "manualSelector", "clusterIP", "clusterIPs", "nodePort"),
        *("ipFamilies", "ipFamilyPolicy", "healthCheckNodePort", "controller-uid", "job-name"),
        *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"),
    )
)
"""The fields that an API server adds to a new object."""
_POD_KINDS: Final[Mapping[str, str]] = {
    "Pod": "object",
    "CronJob": "object.spec.jobTemplate.spec.template",
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job", "ReplicationController"),
        "object.spec.template",
    ),
}
_OF_PODS: Final = (
    "!has(pod.spec.hostNetwork) || !pod.spec.hostNetwork",
    "pod.spec.restartPolicy in ['Always', 'Never']",
    "pod.spec.terminationGracePeriodSeconds <= 30",
    "pod.spec.dnsPolicy == 'ClusterFirst' && pod.spec.schedulerName == 'default-scheduler'",
    "has(pod.spec.securityContext) && size(pod.spec.securityContext) > 0",
    "!has(pod.spec.nodeSelector) || size(pod.spec.nodeSelector) > 0",
    "!has(pod.spec.volumes) || pod.spec.volumes.all(v, has(v.emptyDir) || has(v.configMap) || size(v) == 2)",
    "!has(pod.spec.volumes) || pod.spec.volumes.all(v, !has(v.configMap) || v.configMap.defaultMode == 420)",
    "!has(pod.spec.volumes) || pod.spec.volumes.all(v, !has(v.emptyDir) || size(v.emptyDir) > 0)",
    "pod.spec.containers.all(c, c.imagePullPolicy == 'IfNotPresent')",
    "pod.spec.containers.all(c, c.terminationMessagePolicy == 'File')",
    "pod.spec.containers.all(c, !has(c.ports) || c.ports.all(p, p.protocol == 'TCP'))",
    "pod.spec.containers.all(c, !has(c.env) || size(c.env) == 4)",
    "pod.spec.containers.all(c, !has(c.env) || c.env.all(e, has(e.value) != has(e.valueFrom)))",
    "pod.spec.containers.all(c, has(c.resources.limits) && size(c.resources.limits) > 2)",
    "pod.spec.containers.all(c, quantity(c.resources.limits['nvidia.com/gpu']).isLessThan(quantity('1')))",
    "pod.spec.containers.all(c, quantity(c.resources.requests.cpu).compareTo(quantity('500m')) > 0)",
    "pod.spec.containers.all(c, c.resources.limits == c.resources.requests)",
    "pod.spec.containers.all(c, has(c.securityContext.capabilities.drop))",
    "pod.spec.containers.all(c, !has(c.livenessProbe) || c.livenessProbe.failureThreshold == 3)",
    "pod.spec.containers.all(c, !has(c.livenessProbe.httpGet) || c.livenessProbe.httpGet.scheme == 'HTTP')",
    "pod.spec.initContainers.all(c, has(c.command) && has(c.args))",
    "size(pod.spec.tolerations) == 1 && pod.spec.tolerations[0].effect == 'NoSchedule'",
    "pod.spec.?affinity.?nodeAffinity.hasValue() || !has(pod.spec.affinity)",
)
_OF_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Deployment": (
        "object.spec.replicas == 1",
        "object.spec.strategy.type != 'RollingUpdate' || object.spec.strategy.rollingUpdate.maxSurge == '25%'",
        "object.spec.revisionHistoryLimit == 10 && object.spec.progressDeadlineSeconds == 600",
    ),
    "StatefulSet": (
        "object.spec.updateStrategy.rollingUpdate.partition == 0",
        "object.spec.persistentVolumeClaimRetentionPolicy.whenDeleted == 'Retain'",
        "!has(object.spec.volumeClaimTemplates) || object.spec.volumeClaimTemplates.all(v, v.spec.volumeMode == 'Block')",
    ),
    "DaemonSet": ("object.spec.updateStrategy.rollingUpdate.maxUnavailable == 1",),
    "Job": (
        "object.spec.parallelism == 1 && object.spec.backoffLimit == 6",
        "object.spec.completionMode == 'NonIndexed'",
        "has(object.spec.completions)",
        "object.spec.suspend == true",
        "object.metadata.?labels[?'app'].orValue('') == 'main'",
    ),
    "CronJob": (
        "object.spec.concurrencyPolicy == 'Allow' && !object.spec.suspend",
        "object.spec.successfulJobsHistoryLimit == 3",
        "has(object.spec.jobTemplate.spec.backoffLimit)",
    ),
    "Service": (
        "object.spec.type == 'ClusterIP' && object.spec.sessionAffinity == 'None'",
        "object.spec.ports.all(p, p.targetPort == p.port)",
        "object.spec.internalTrafficPolicy == 'Cluster'",
        "has(object.spec.selector)",
    ),
    "PersistentVolumeClaim": (
        "object.spec.volumeMode == 'Filesystem'",
        "quantity(object.spec.resources.requests.storage).isLessThan(quantity('2Gi'))",
        "has(object.spec.storageClassName)",
    ),
    "PersistentVolume": ("object.spec.persistentVolumeReclaimPolicy == 'Retain'", "has(object.spec.nodeAffinity)"),
    "ConfigMap": ("has(object.data)", "size(object.data) == 1", "!has(object.immutable)"),
    "Secret": ("object.type == 'Opaque'", "has(object.data) && has(object.immutable)"),
    "ServiceAccount": ("has(object.secrets)", "object.automountServiceAccountToken == true"),
    "Namespace": (
        "object.metadata.labels['kubernetes.io/metadata.name'] == object.metadata.name",
        "object.metadata.labels.size() == 1",
    ),
    "LimitRange": (
        "object.spec.limits.all(l, has(l.default))",
        "object.spec.limits.all(l, l.defaultRequest == l.default)",
    ),
    "ResourceQuota": ("has(object.spec.hard)", "quantity(object.spec.hard['requests.nvidia.com/gpu']).asInteger() < 9"),
    "Ingress": ("has(object.spec.rules)", "object.spec.rules.all(r, r.http.paths.all(p, p.pathType == 'Prefix'))"),
    "IngressClass": ("object.spec.parameters.scope == 'Cluster'",),
    "NetworkPolicy": (
        "object.spec.policyTypes == ['Ingress']",
        "!has(object.spec.podSelector.matchLabels)",
        "object.spec.ingress.all(i, i.ports.all(p, p.protocol == 'TCP'))",
    ),
    "PodDisruptionBudget": ("object.spec.minAvailable == 1", "has(object.spec.selector)"),
    "HorizontalPodAutoscaler": (
        "object.spec.minReplicas == 1",
        "object.spec.metrics[0].resource.target.averageUtilization == 80",
        "object.spec.behavior.scaleUp.policies.size() == 2",
    ),
    "Role": ("object.rules.all(r, has(r.resources))",),
    "ClusterRole": ("has(object.aggregationRule)", "object.rules.size() > 0"),
    "RoleBinding": ("object.subjects.all(s, has(s.apiGroup))", "object.roleRef.apiGroup == ''"),
    "ClusterRoleBinding": ("object.subjects.all(s, has(s.namespace))", "has(object.subjects)"),
    "StorageClass": ("object.reclaimPolicy == 'Delete' && object.volumeBindingMode == 'Immediate'",),
    "PriorityClass": ("object.preemptionPolicy == 'PreemptLowerPriority'", "has(object.globalDefault)"),
    "ResourceClaim": (
        "object.spec.devices.requests.all(r, has(r.exactly) && r.exactly.count == 1)",
        "has(object.spec.devices.constraints)",
    ),
    "ResourceClaimTemplate": (
        "object.spec.spec.devices.requests.all(r, r.exactly.allocationMode == 'ExactCount')",
        "has(object.spec.metadata.labels)",
    ),
    "DeviceClass": ("has(object.spec.selectors)", "object.spec.config.size() == 1"),
}
"""Expressions of a site's policies by kind. Some read fields that an object may lack."""


def printing_expressions(shape: JSON) -> list[str]:
    """Return expressions that print all fields of an object. Each prints some fields, so its text fits a message.
    `shape` is an object with all fields.
    """
    parts = [_printed("object", {name: value}) for name, value in shape.items() if name not in ("apiVersion", "spec")]
    first, *texts = [f"[{', '.join(parts)}].join('|')"]
    for path, spec in _parts_of_spec(shape):
        texts += [_printed_below("object", path, {name: value}) for name, value in spec.items()]
    return [first, *texts]


def _parts_of_spec(shape: JSON) -> Iterator[tuple[tuple[str, ...], JSON]]:
    """Yield the lists of a pod template, and the rest of the spec."""
    path: tuple[str, ...] = ("spec",)
    spec = shape.get("spec") or {}
    while isinstance(spec, dict) and spec:
        inner = next((name for name in ("jobTemplate", "template", "spec") if isinstance(spec.get(name), dict)), "")
        big = {name: spec[name] for name in ("containers", "initContainers", "volumes") if name in spec}
        rest = {name: value for name, value in spec.items() if name not in (inner, *big)}
        if rest:
            yield path, {"": rest}
        for name, value in big.items():
            yield path, {name: value}
        spec, path = (spec[inner], (*path, inner)) if inner else ({}, path)


def _printed_below(base: str, path: tuple[str, ...], value: JSON) -> str:
    steps = "".join(f"[?'{step}']" for step in path)
    fields = value.get("", value)
    return f"{base}{steps}.optMap(top, {_printed('top', fields)}).orValue({ABSENT})"


def _printed(base: str, fields: JSON, depth: int = 0) -> str:
    texts = [_field(f"dyn({base})[?'{name}']", value, depth) for name, value in fields.items() if name not in OF_SERVER]
    return f"[{', '.join(texts) or ABSENT}].join('|')"


def _field(optional: str, value: JSON, depth: int) -> str:
    name = f"v{depth}"
    if isinstance(value, dict):
        shown = _printed(name, value, depth + 1)
        return f"{optional}.optMap({name}, '{{' + {shown} + '}}').orValue({ABSENT})"
    if isinstance(value, list):
        each = f"e{depth}"
        merged = _merged(value)
        shown = _printed(each, merged, depth + 1) if isinstance(merged, dict) else f"string(dyn({each}))"
        return f"{optional}.optMap({name}, '[' + dyn({name}).map({each}, {shown}).join(';') + ']').orValue({ABSENT})"
    return f"{optional}.optMap({name}, string(dyn({name}))).orValue({ABSENT})"


def merged_shapes(*values: JSON) -> JSON:
    return _merged([*values])


def _merged(values: list[JSON]) -> JSON:
    if not values or not all(isinstance(each, type(values[0])) for each in values):
        return values[0] if values else ""
    if isinstance(values[0], dict):
        names = dict.fromkeys(name for each in values for name in each)
        return {name: _merged([each[name] for each in values if name in each]) for name in names}
    if isinstance(values[0], list):
        return [item for each in values for item in each]
    return values[0]


def judging_expressions(kind: str) -> list[str]:
    template = _POD_KINDS.get(kind)
    of_pods = [each.replace("pod.", f"{template}.") for each in _OF_PODS] if template else []
    return [*_OF_KINDS.get(kind, ()), *of_pods]


def policy_of_kind(kind: GroupVersionKind, name: str, validations: list[JSON], *actions: str) -> list[dict[str, Any]]:
    """Return a policy with its binding. It applies to objects that have the name of the policy."""
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": ["CREATE"],
        "resources": [plural_of_kind(kind.kind)],
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    return [
        {
            **head,
            "kind": "ValidatingAdmissionPolicy",
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "matchConditions": [{"name": "named", "expression": f"object.metadata.name == '{name}'"}],
                "validations": validations,
            },
        },
        {
            **head,
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": name, "validationActions": [*actions]},
        },
    ]
