"""The defaults that an API server adds to pod templates of native objects after a patch, for comparing objects.

An expected object recorded from a server has its defaults, a webhook's patch has not. Neither the core nor a patch uses
this: defaulting is the server's. Source: kubernetes v1.36 pkg/apis/core/v1/defaults.go, pkg/util/parsers.
"""

from __future__ import annotations

from webhook.apimachinery.attributes import JSON

_SERVER_METADATA = frozenset(("managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"))
_EMPTY = frozenset(("resources", "securityContext", "nodeSelector", "labels", "annotations", "strategy", "metadata"))
_POD_SPEC = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
}
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_TEMPLATES = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "ReplicationController"),
        ("spec", "template", "spec"),
    ),
}
_NATIVE = frozenset(("v1", "apps/v1", "batch/v1"))


def comparable_object(obj: JSON) -> JSON:
    """Return an object with defaults and without fields that only a server writes, for comparison."""
    if not isinstance(obj, dict):
        return obj
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _SERVER_METADATA}
    if metadata.get("namespace") == "default":
        del metadata["namespace"]
    bare = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    return _without_empty(with_template_defaults({**bare, "metadata": metadata}))


def _without_empty(value: JSON) -> JSON:
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned = {key: _without_empty(item) for key, item in value.items()}
    return {key: item for key, item in cleaned.items() if key not in _EMPTY or item not in ({}, None)}


def with_template_defaults(obj: JSON) -> JSON:
    """Return a native object with the defaults of its pod template; other objects are returned unchanged."""
    if obj.get("apiVersion") == "v1" and obj.get("kind") == "Service":
        return _service(obj)
    path = _TEMPLATES.get(obj.get("kind", "")) if obj.get("apiVersion") in _NATIVE else None
    if path is None:
        return obj
    return _fill_pod_spec_at(obj, path, is_pod=obj["kind"] == "Pod")


def _service(obj: JSON) -> JSON:
    spec = obj.get("spec") or {}
    ports = [{"protocol": "TCP", "targetPort": port.get("port"), **port} for port in spec.get("ports") or ()]
    return {**obj, "spec": {**spec, "ports": ports}} if ports else obj


def _fill_pod_spec_at(value: JSON, path: tuple[str, ...], *, is_pod: bool) -> JSON:
    if not isinstance(value, dict):
        return value
    if not path:
        return _pod_spec(value, is_pod=is_pod)
    return {**value, path[0]: _fill_pod_spec_at(value.get(path[0]), path[1:], is_pod=is_pod)}


def _pod_spec(spec: JSON, *, is_pod: bool) -> JSON:
    filled = {**_POD_SPEC, **({"enableServiceLinks": True} if is_pod else {}), **spec}
    for name in ("containers", "initContainers"):
        if isinstance(spec.get(name), list):
            filled[name] = [_container(each, is_pod=is_pod) for each in spec[name]]
    return filled


def _container(container: JSON, *, is_pod: bool) -> JSON:
    if not isinstance(container, dict):
        return container
    filled = {**_CONTAINER, "imagePullPolicy": pull_policy(container.get("image") or ""), **container}
    if isinstance(container.get("ports"), list):
        filled["ports"] = [{"protocol": "TCP", **port} for port in container["ports"]]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(probe), dict):
            filled[probe] = {**_PROBE, **container[probe]}
    resources = container.get("resources") or {}
    if is_pod and resources.get("limits"):
        filled["resources"] = {**resources, "requests": {**resources["limits"], **(resources.get("requests") or {})}}
    return filled


def pull_policy(image: str) -> str:
    """Return the imagePullPolicy of an image: Always for the tag `latest` or none, else IfNotPresent."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if (tag == "latest") or (not tag and not digest) else "IfNotPresent"
