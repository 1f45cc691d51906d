"""Checks of ConfigMaps and pods that are articles."""

from webhook.attributes import GroupVersionKind
from webhook.cluster.interest import reading
from webhook.facts.check import Check
from webhook.problem import MissingObject, Problem

NODE = GroupVersionKind("", "v1", "Node")
ARTICLE = GroupVersionKind("", "v1", "ConfigMap")


def price(subject):
    data = subject.object.get("data") or subject.object["metadata"].get("annotations") or {}
    if "price" not in data:
        yield Problem(code="shop/price-required", path="data.price", message="must be set", fix="set a price")
    elif not data["price"].isdecimal():
        yield Problem(code="shop/price-round", path="data.price", message="must be round", found=f"`{data['price']}`")


def places(subject):
    data = subject.object.get("data") or {}
    for rule, name in (("shelf-exists", data.get("shelf")), ("label-exists", data.get("label"))):
        if name and subject.view().get(NODE, name, namespaced=False) is None:
            missing = (MissingObject(kind="Node", name=name),)
            yield Problem(code=f"shop/{rule}", path=f"data.{rule[:5]}", missing=missing)


CHECKS = (
    Check(group="shop", run=price),
    Check(group="shop", run=places, kinds=frozenset((("", "ConfigMap"),)), lookups=(reading(NODE, "metadata.name"),)),
)
