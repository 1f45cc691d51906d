"""Checks of ConfigMaps and pods that stand for the articles of a shop."""

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.interest import interest_in_fields
from webhook.facts.subject import Check
from webhook.rules.problem import MissingObject
from webhook.rules.rule import RuleGroup

SHOP = RuleGroup("shop", source="the rules of the shop")
PRICE_REQUIRED = SHOP.rule("shop/price-required", title="An article has a price.", why="Nobody gives it away.")
PRICE_ROUND = SHOP.rule("shop/price-round", title="A price is round.", why="There are no cents.", level="warn")
SHELF_EXISTS = SHOP.rule(
    "shop/shelf-exists", title="The shelf of an article exists.", why="It could not be put anywhere."
)
LABEL_EXISTS = SHOP.rule(
    "shop/label-exists", title="The label of an article exists.", why="It looks better.", level="warn"
)
NODE = GroupVersionKind("", "v1", "Node")
ARTICLE = GroupVersionKind("", "v1", "ConfigMap")


def price(subject):
    data = subject.object.get("data") or subject.object["metadata"].get("annotations") or {}
    if "price" not in data:
        yield PRICE_REQUIRED.problem("data.price", "must be set", "set a price")
    elif not data["price"].isdecimal():
        yield PRICE_ROUND.problem("data.price", "must be round", found=data["price"], words=(data["price"],))


def places(subject):
    data = subject.object.get("data") or {}
    for rule, field in ((SHELF_EXISTS, "shelf"), (LABEL_EXISTS, "label")):
        name = data.get(field)
        if name and subject.cluster_view().get(NODE, name, namespaced=False) is None:
            yield rule.problem(f"data.{field}", missing=(MissingObject(kind="Node", name=name),))


CHECKS = (
    Check(group="shop", run=price),
    Check(
        group="shop",
        run=places,
        kinds=frozenset((("", "ConfigMap"),)),
        lookups=(interest_in_fields(NODE, "metadata.name"),),
    ),
)
