"""core/v1 LimitRange, with the fields that checks read."""

from __future__ import annotations

from webhook.attributes import GroupVersionKind
from webhook.typed.fields import Amounts, Part, Parts, Text
from webhook.typed.objects import Object
from webhook.typed.view import Typed


class LimitRangeItem(Typed):
    """core/v1 LimitRangeItem: the bounds and defaults of containers, or the bounds of pods."""

    type = Text()
    max = Amounts()
    min = Amounts()
    default = Amounts()
    default_request = Amounts()


class LimitRangeSpec(Typed):
    """core/v1 LimitRangeSpec."""

    limits = Parts(LimitRangeItem)


class LimitRange(Object):
    """core/v1 LimitRange."""

    gvk = GroupVersionKind("", "v1", "LimitRange")
    spec = Part(LimitRangeSpec)
