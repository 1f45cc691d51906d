"""core/v1 Node, with the fields that checks read."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.typed.fields import Amounts, Part, Parts, Truth
from webhook.typed.objects import Object, Status
from webhook.typed.pods import Taint
from webhook.typed.view import Typed


class NodeSpec(Typed):
    """core/v1 NodeSpec."""

    taints = Parts(Taint)
    unschedulable = Truth()


class NodeStatus(Status):
    """core/v1 NodeStatus."""

    allocatable = Amounts()


class Node(Object):
    """core/v1 Node."""

    gvk = GroupVersionKind("", "v1", "Node")
    spec = Part(NodeSpec)
    status = Part(NodeStatus)
