"""The fact `shop`: whether the shelf and the label of an article exist, each looked up separately."""

from tests.rules.shop.checks import NODE
from webhook.cel.types import BOOL
from webhook.facts.fact import FactResult, declare_structure
from webhook.facts.subject import Fact

SHOP = declare_structure("Shop", shelf=(BOOL, "whether the shelf is there"), label=(BOOL, "whether the label is there"))


def compute(subject):
    view = subject.cluster_view()
    data = subject.object.get("data") or {}
    value = {
        name: view.for_fields(name).get(NODE, data[name], namespaced=False) is not None if name in data else True
        for name in ("shelf", "label")
    }
    return FactResult(value, view.missing_objects_by_field())


FACTS = (
    Fact(
        name="shop", about="An article.", examples=("shop.shelf",), type=SHOP.type, structures=(SHOP,), compute=compute
    ),
)
