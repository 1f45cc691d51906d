"""Sets the defaults that API servers set in built-in objects before webhooks and policies get them.

The object must have the form of sent.py, in which an unset field is absent. The defaults of an object are set before
the defaults of its parts. Values that API servers fill in later are not here, such as names, selectors and labels of
Jobs, and tolerations from admission plugins. Source: kubernetes v1.36
pkg/apis/*/v*/{defaults,zz_generated.defaults,conversion}.go; tests/e2e/test_sent.py, test_api_defaults.py and
test_hand_written.py compare with kube-apiserver 1.36.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from webhook.apimachinery.attributes import JSON, NAME_LABEL, GroupVersionKind
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.quantity import Quantity, read_quantity_or_none
from webhook.deadline import Deadline
from webhook.schema.kinds import type_of
from webhook.schema.types import Fields, Items, Type

Parts: TypeAlias = dict[str, Any]
Fill: TypeAlias = Callable[[JSON, Deadline], JSON]
"""Returns a value with the defaults of its type."""


def with_api_defaults(obj: JSON, kind: GroupVersionKind, deadline: Deadline | None = None) -> JSON:
    """Return an object of a built-in kind, in the form of sent.py, with its defaults."""
    fill = _fill_of_type(type_of(kind) or "any")
    return obj if fill is None else fill(obj, deadline or Deadline())


@cache
def _fill_of_type(of: Type) -> Fill | None:
    """Return the function that sets the defaults of a type and its parts; None without defaults."""
    if isinstance(of, Items):
        return _fill_of_list(of)
    if not isinstance(of, Fields):
        return None
    if of.fields:
        return _fill_of_object(of)
    return _fill_of_map(of.others) if of.others is not None else None


def _fill_of_list(of: Items) -> Fill | None:
    inner = _fill_of_type(of.item)
    if inner is None:
        return None

    def fill(value: JSON, deadline: Deadline) -> JSON:
        return value and [inner(each, deadline) for each in deadline.charge_for_items(value)]

    return fill


def _fill_of_map(of: Type) -> Fill | None:
    inner = _fill_of_type(of)
    if inner is None:
        return None

    def fill(value: JSON, deadline: Deadline) -> JSON:
        return value and {key: inner(each, deadline) for key, each in deadline.charge_for_items(value.items())}

    return fill


def _fill_of_object(of: Fields) -> Fill | None:
    set_defaults, constants = _FUNCTIONS.get(of.name), _CONSTANTS.get(of.name)
    parts = [(name, inner) for name, each in of.fields.items() if (inner := _fill_of_type(each)) is not None]
    # Go always writes some fields. In these fields, a zero value means not set
    unset = [(name, of.always[name], each) for name, each in (constants or {}).items() if name in of.always]
    if set_defaults is None and constants is None and not parts:
        return None
    has_defaults = set_defaults is not None or constants is not None
    parts_with_defaults = frozenset(name for name, _ in parts)

    def fill(value: JSON, deadline: Deadline) -> JSON:
        if not isinstance(value, dict):
            return value
        if not has_defaults and parts_with_defaults.isdisjoint(value):
            return value
        filled = {**constants, **value} if constants else dict(value)
        for name, zero, default in unset:
            if filled[name] == zero:
                filled[name] = default
        if set_defaults is not None:
            set_defaults(filled)
        for name, inner in parts:
            if name in filled:
                filled[name] = inner(filled[name], deadline)
        return filled

    return fill


def _fill_in(value: Parts, **defaults: JSON) -> None:
    for name, default in defaults.items():
        value.setdefault(name, default)


def _fill_pod(pod: Parts) -> None:
    """Set the defaults of a Pod that a pod template does not get."""
    spec = pod["spec"] = {"enableServiceLinks": True, **(pod.get("spec") or {})}
    for name in ("containers", "initContainers"):
        if spec.get(name):
            is_on_host = spec.get("hostNetwork", False)
            spec[name] = [_container_of_pod(each, is_on_host=is_on_host) for each in spec[name]]
    if resources := spec.get("resources"):
        spec["resources"] = _pod_level_resources(dict(resources), spec)


def _container_of_pod(container: JSON, *, is_on_host: bool) -> JSON:
    limits = (container.get("resources") or {}).get("limits")
    if limits:
        requests = {**limits, **(container["resources"].get("requests") or {})}
        container = {**container, "resources": {**container["resources"], "requests": requests}}
    if is_on_host and container.get("ports"):
        ports = [
            {**each, "hostPort": each.get("hostPort") or each.get("containerPort", 0)} for each in container["ports"]
        ]
        container = {**container, "ports": ports}
    return container


_POD_LEVEL: Final = ("cpu", "memory")


def _pod_level_resources(resources: Parts, spec: JSON) -> JSON:
    """Return the pod-level resources, completed from the resources of the containers."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits and not requests:
        return resources
    huge = {
        name: amount
        for name, amount in _total_of_containers(spec, "limits").items()
        if name.startswith("hugepages-") and name not in requests
    }
    limits = {**huge, **limits}
    if limits:
        total = _total_of_containers(spec, "requests")
        named = {name: amount for name, amount in total.items() if name in _POD_LEVEL}
        pod_level = {name: amount for name, amount in limits.items() if name in _POD_LEVEL or name in huge}
        requests = {**pod_level, **named, **requests}
    return {**resources, **({"limits": limits} if limits else {}), **({"requests": requests} if requests else {})}


def _total_of_containers(spec: JSON, of: str) -> Mapping[str, str]:
    """Return the total of a Pod: the sum of the containers that run together, or the largest init container."""
    running: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add_amounts(running, container, of)
    most: dict[str, Quantity] = {}
    sidecars: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            _add_amounts(sidecars, container, of)
            _keep_largest(most, sidecars)
            _add_amounts(running, container, of)
        else:
            at_once = dict(sidecars)
            _add_amounts(at_once, container, of)
            _keep_largest(most, at_once)
    _keep_largest(running, most)
    return {name: str(amount) for name, amount in running.items()}


def _add_amounts(total: dict[str, Quantity], container: JSON, of: str) -> None:
    for name, text in ((container.get("resources") or {}).get(of) or {}).items():
        amount = read_quantity_or_none(text)
        if amount is not None:
            total[name] = total[name].add(amount) if name in total else amount


def _keep_largest(total: dict[str, Quantity], others: Mapping[str, Quantity]) -> None:
    for name, amount in others.items():
        if name not in total or total[name] < amount:
            total[name] = amount


def _fill_pod_spec(spec: Parts) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec |= {"serviceAccountName": name, "serviceAccount": name}


def _fill_container(container: Parts) -> None:
    container.setdefault("imagePullPolicy", pull_policy(container.get("image") or ""))


def pull_policy(image: str) -> str:
    """Return the imagePullPolicy of an image: Always for the tag `latest` or without a tag, else IfNotPresent."""
    name = parse_image_name(image)
    is_latest = name.tag == "latest" or not (name.tag or name.digest)
    return "Always" if is_latest else "IfNotPresent"


def _fill_volume(volume: Parts) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}


def _fill_image_volume(source: Parts) -> None:
    source.setdefault("pullPolicy", pull_policy(source.get("reference") or ""))


def _fill_namespace(namespace: Parts) -> None:
    metadata = namespace.get("metadata") or {}
    if name := metadata.get("name"):
        labels = {**(metadata.get("labels") or {}), NAME_LABEL: name}
        namespace["metadata"] = {**metadata, "labels": labels}


def _fill_secret(secret: Parts) -> None:
    """Convert `stringData` to `data`, as the conversion of a Secret does."""
    texts = secret.pop("stringData", None)
    if texts:
        encoded = {key: b64encode(text.encode(errors="replace")).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def _fill_service(service: Parts) -> None:
    spec = service["spec"] = {"sessionAffinity": "None", "type": "ClusterIP", **(service.get("spec") or {})}
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if "timeoutSeconds" not in client:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    kind = spec["type"]
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _fill_service_port(port: Parts) -> None:
    if port.get("targetPort") in (None, 0, ""):
        port["targetPort"] = port["port"]


def _fill_limit_range_item(item: Parts) -> None:
    if item.get("type") == "Container":
        default = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
        item |= {name: amounts for name, amounts in (("default", default), ("defaultRequest", requests)) if amounts}


def _fill_replication_controller(controller: Parts) -> None:
    spec = controller["spec"] = {"replicas": 1, **(controller.get("spec") or {})}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = labels
        _fill_labels(controller, labels)


def _fill_labels(obj: Parts, labels: JSON) -> None:
    metadata = obj.get("metadata") or {}
    if not metadata.get("labels"):
        obj["metadata"] = {**metadata, "labels": labels}


def _fill_deployment_strategy(strategy: Parts) -> None:
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {
            "maxUnavailable": "25%",
            "maxSurge": "25%",
            **(strategy.get("rollingUpdate") or {}),
        }


def _fill_daemon_set_strategy(strategy: Parts) -> None:
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxUnavailable": 1, "maxSurge": 0, **(strategy.get("rollingUpdate") or {})}


def _fill_stateful_set_strategy(strategy: Parts) -> None:
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"] = {"partition": 0, **strategy["rollingUpdate"]}


def _fill_stateful_set(spec: Parts) -> None:
    retention = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    spec["persistentVolumeClaimRetentionPolicy"] = {
        **retention,
        **(spec.get("persistentVolumeClaimRetentionPolicy") or {}),
    }
    if spec.get("volumeClaimTemplates"):
        spec["volumeClaimTemplates"] = [_claim_template(each) for each in spec["volumeClaimTemplates"]]


def _claim_template(claim: JSON) -> JSON:
    """Return a claim of a StatefulSet as the conversion writes the claim: with the kind and the phase Pending."""
    status = {"phase": "Pending", **(claim.get("status") or {})}
    return {**claim, "apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": status}


def _fill_job(job: Parts) -> None:
    spec = job["spec"] = {"completionMode": "NonIndexed", "suspend": False, **(job.get("spec") or {})}
    if "parallelism" not in spec:
        _fill_in(spec, **({} if "completions" in spec else {"completions": 1}), parallelism=1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        _fill_labels(job, labels)


def _fill_network_policy(spec: Parts) -> None:
    spec.setdefault("policyTypes", ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])


def _fill_role_ref(ref: Parts) -> None:
    if not ref.get("apiGroup"):
        ref["apiGroup"] = _RBAC


def _fill_subject(subject: Parts) -> None:
    if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = _RBAC


def _fill_device_request(request: Parts) -> None:
    if request.get("deviceClassName"):  # "" with firstAvailable, because Go always writes the field
        _fill_exact_request(request)


def _fill_exact_request(request: Parts) -> None:
    request.setdefault("allocationMode", "ExactCount")
    if request["allocationMode"] == "ExactCount":
        request.setdefault("count", 1)


def _fill_autoscaler(spec: Parts) -> None:
    _fill_in(spec, minReplicas=1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        spec["behavior"] = {**behavior, **{name: _scaling_rules(behavior, name) for name in ("scaleUp", "scaleDown")}}


def _scaling_rules(behavior: JSON, name: str) -> JSON:
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    defaults: Parts = {"selectPolicy": "Max", "policies": [percent]}
    if name == "scaleUp":
        pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
        defaults |= {"stabilizationWindowSeconds": 0, "policies": [pods, percent]}
    return {**defaults, **(behavior.get(name) or {})}


def _fill_endpoint_port(port: Parts) -> None:
    _fill_in(port, name="", protocol="TCP")


def _fill_webhook_service(client: Parts) -> None:
    client.setdefault("port", 443)


_RBAC: Final = "rbac.authorization.k8s.io"
_MODE: Final = {"defaultMode": 0o644}
_PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_CONTAINER: Final = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_ISCSI: Final = {"iscsiInterface": "default"}
_RBD: Final = {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}
_TOLERATION: Final = {"operator": "Equal"}
_MAPPING: Final = {"allocationMultiplier": "1"}
_SCALE_IO: Final = {"storageMode": "ThinProvisioned", "fsType": "xfs"}
_WEBHOOK: Final[JSON] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}
_CONSTANTS: Final[Mapping[str, Mapping[str, JSON]]] = {
    "core.v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    "core.v1.Container": _CONTAINER,
    "core.v1.EphemeralContainer": _CONTAINER,
    "core.v1.ContainerPort": {"protocol": "TCP"},
    "core.v1.Probe": _PROBE,
    "core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core.v1.GRPCAction": {"service": ""},
    "core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core.v1.FileKeySelector": {"optional": False},
    "core.v1.SecretVolumeSource": _MODE,
    "core.v1.ConfigMapVolumeSource": _MODE,
    "core.v1.DownwardAPIVolumeSource": _MODE,
    "core.v1.ProjectedVolumeSource": _MODE,
    "core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core.v1.HostPathVolumeSource": {"type": ""},
    "core.v1.ISCSIVolumeSource": _ISCSI,
    "core.v1.ISCSIPersistentVolumeSource": _ISCSI,
    "core.v1.RBDVolumeSource": _RBD,
    "core.v1.RBDPersistentVolumeSource": _RBD,
    "core.v1.ScaleIOVolumeSource": _SCALE_IO,
    "core.v1.ScaleIOPersistentVolumeSource": _SCALE_IO,
    "core.v1.AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core.v1.Secret": {"type": "Opaque"},
    "core.v1.ServicePort": {"protocol": "TCP"},
    "core.v1.EndpointPort": {"protocol": "TCP"},
    "apps.v1.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "apps.v1.DeploymentStrategy": {"type": "RollingUpdate"},
    "apps.v1.ReplicaSetSpec": {"replicas": 1},
    "apps.v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps.v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate"},
    "apps.v1.StatefulSetSpec": {"replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady"},
    "batch.v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "networking.v1.IngressClassParametersReference": {"scope": "Cluster"},
    "storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "storage.v1.CSIDriverSpec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    },
    "resource.v1.DeviceToleration": _TOLERATION,
    "resource.v1beta1.DeviceToleration": _TOLERATION,
    "resource.v1beta2.DeviceToleration": _TOLERATION,
    "resource.v1.NodeAllocatableResourceMapping": _MAPPING,
    "resource.v1beta1.NodeAllocatableResourceMapping": _MAPPING,
    "resource.v1beta2.NodeAllocatableResourceMapping": _MAPPING,
    "flowcontrol.v1.FlowSchemaSpec": {"matchingPrecedence": 1000},
    "flowcontrol.v1.ExemptPriorityLevelConfiguration": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
    "flowcontrol.v1.LimitedPriorityLevelConfiguration": {"nominalConcurrencyShares": 30, "lendablePercent": 0},
    "flowcontrol.v1.QueuingConfiguration": {"queues": 64, "handSize": 8, "queueLengthLimit": 50},
    "scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "autoscaling.v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "admissionregistration.v1.ValidatingWebhook": _WEBHOOK,
    "admissionregistration.v1.MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
    "admissionregistration.v1.RuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.MatchResources": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    },
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration.v1.MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
}
"""The defaults that do not depend on other fields, by the name of the type."""
_FUNCTIONS: Final[Mapping[str, Callable[[Parts], None]]] = {
    "core.v1.Pod": _fill_pod,
    "core.v1.PodSpec": _fill_pod_spec,
    "core.v1.Container": _fill_container,
    "core.v1.EphemeralContainer": _fill_container,
    "core.v1.Volume": _fill_volume,
    "core.v1.ImageVolumeSource": _fill_image_volume,
    "core.v1.Namespace": _fill_namespace,
    "core.v1.Secret": _fill_secret,
    "core.v1.Service": _fill_service,
    "core.v1.ServicePort": _fill_service_port,
    "core.v1.LimitRangeItem": _fill_limit_range_item,
    "core.v1.ReplicationController": _fill_replication_controller,
    "apps.v1.DeploymentStrategy": _fill_deployment_strategy,
    "apps.v1.DaemonSetUpdateStrategy": _fill_daemon_set_strategy,
    "apps.v1.StatefulSetSpec": _fill_stateful_set,
    "apps.v1.StatefulSetUpdateStrategy": _fill_stateful_set_strategy,
    "batch.v1.Job": _fill_job,
    "networking.v1.NetworkPolicySpec": _fill_network_policy,
    "rbac.v1.RoleRef": _fill_role_ref,
    "rbac.v1.Subject": _fill_subject,
    "resource.v1.ExactDeviceRequest": _fill_exact_request,
    "resource.v1.DeviceSubRequest": _fill_exact_request,
    "resource.v1beta1.DeviceRequest": _fill_device_request,
    "resource.v1beta1.DeviceSubRequest": _fill_exact_request,
    "resource.v1beta2.ExactDeviceRequest": _fill_exact_request,
    "resource.v1beta2.DeviceSubRequest": _fill_exact_request,
    "autoscaling.v2.HorizontalPodAutoscalerSpec": _fill_autoscaler,
    "discovery.v1.EndpointPort": _fill_endpoint_port,
    "admissionregistration.v1.ServiceReference": _fill_webhook_service,
}
"""The functions that set defaults in an object of a type in place, by the name of the type."""
