"""The kinds that checks of devices look up or check, with the fields that they read."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.facts.kinds import RUNTIME_CLASS
from webhook.typed.fields import Labels, Part, Parts, Raw, Texts, ValueMap
from webhook.typed.objects import Object
from webhook.typed.view import Typed


class RuntimeClassScheduling(Typed):
    """node.k8s.io/v1 Scheduling: the nodes to which a RuntimeClass sends its pods."""

    node_selector = Labels()


class RuntimeClass(Object):
    """node.k8s.io/v1 RuntimeClass."""

    gvk = RUNTIME_CLASS
    scheduling = Part(RuntimeClassScheduling)


class ResourceQuotaSpec(Typed):
    """core/v1 ResourceQuotaSpec."""

    hard = ValueMap()
    scopes = Texts()
    scope_selector = Raw()


class ResourceQuota(Object):
    """core/v1 ResourceQuota."""

    gvk = GroupVersionKind("", "v1", "ResourceQuota")
    spec = Part(ResourceQuotaSpec)


class LimitRangeItem(Typed):
    """core/v1 LimitRangeItem; null amounts are kept."""

    max = ValueMap()
    min = ValueMap()
    default = ValueMap()
    default_request = ValueMap()
    max_limit_request_ratio = ValueMap()


class LimitRangeSpec(Typed):
    """core/v1 LimitRangeSpec."""

    limits = Parts(LimitRangeItem)


class LimitRange(Object):
    """core/v1 LimitRange."""

    gvk = GroupVersionKind("", "v1", "LimitRange")
    spec = Part(LimitRangeSpec)
