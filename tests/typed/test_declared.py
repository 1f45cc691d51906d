"""The fields of typed objects are in the schemas of their kinds, with the same types."""

import importlib
import pathlib

import pytest

import webhook.facts
from webhook.schema.kinds import type_of
from webhook.schema.types import Fields, Items
from webhook.schema.types import kubernetes_type as type_named
from webhook.typed import fields
from webhook.typed.objects import Object
from webhook.typed.pods import Container, Pod, PodTemplate
from webhook.typed.view import Typed

SCALARS = {
    fields.Text: {"text"},
    fields.Number: {"number", "int64", "int32"},
    fields.OptionalNumber: {"number", "int64", "int32"},
    fields.Truth: {"truth"},
    fields.OptionalTruth: {"truth"},
}
VERSIONS = ("v1", "v2", "v2beta1", "v1beta3", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2", "v1alpha1")
UNDECLARED = {"status"}
"""Controllers write this field, and no schema declares it."""
WITHOUT_SCHEMA = {"Cohort.spec.parent"}
"""Fields of a version whose schema claimgate does not have: v1alpha1 of Kueue."""


def modules():
    root = pathlib.Path(webhook.facts.__file__).parent
    return [
        ".".join(("webhook", "facts", *path.relative_to(root).with_suffix("").parts)) for path in root.rglob("*.py")
    ]


def subclasses(kind):
    return [each for inner in kind.__subclasses__() for each in (inner, *subclasses(inner))]


def whole_objects():
    for name in modules():
        importlib.import_module(name.removesuffix(".__init__"))
    """The typed objects of one kind. An object of any kind has no schema."""
    kinds = {kind for kind in subclasses(Object) if kind.__module__.startswith("webhook.") and hasattr(kind, "gvk")}
    return sorted(kinds, key=str)


def wrong(kind, declared, path):
    for name, field in ((n, f) for c in kind.__mro__ for n, f in vars(c).items() if isinstance(f, fields.Field)):
        inner = declared.fields.get(field.name, declared.others)
        where = f"{path}.{field.name}"
        if field.name in UNDECLARED or where in WITHOUT_SCHEMA or inner == "any":
            continue
        if inner is None:
            yield f"{where} ({kind.__name__}.{name}): no such field"
        elif type(field) in SCALARS and inner not in SCALARS[type(field)]:
            yield f"{where}: is {inner}"
        elif isinstance(field, fields.Part | fields.Parts | fields.PartMap):
            yield from wrong_inside(field, inner, where)


def wrong_inside(field, inner, where):
    is_list, is_map = isinstance(field, fields.Parts), isinstance(field, fields.PartMap)
    if is_list != isinstance(inner, Items):
        yield f"{where}: is {'no' if is_list else 'a'} list"
        return
    inner = inner.item if is_list else inner.others if is_map else inner
    if isinstance(inner, Fields):
        yield from wrong(field.kind, inner, where)
    elif inner != "any":
        yield f"{where}: is {inner}"


@pytest.mark.parametrize("kind", whole_objects(), ids=lambda kind: kind.__qualname__)
def test_a_kind_has_the_fields_of_its_schema(kind):
    """A field that one version lacks must be in another version. A typed object reads all of them."""
    declared = [found for version in VERSIONS if (found := type_of(kind.gvk._replace(version=version))) is not None]
    if not declared:
        pytest.skip(f"no schema here declares {kind.gvk}")
    complaints = [set(wrong(kind, version, kind.__name__)) for version in declared]
    assert sorted(set.intersection(*complaints)) == []


def test_a_template_has_the_fields_of_its_schema():
    assert list(wrong(PodTemplate, type_named("core.v1.PodTemplateSpec"), "PodTemplate")) == []


def test_a_wrong_field_is_found():
    class Wrong(Pod):
        metadata = fields.Text()
        speck = fields.Text()

    found = list(wrong(Wrong, type_of(Pod.gvk), "Pod"))
    assert "Pod.speck (Wrong.speck): no such field" in found


def test_a_wrong_type_is_found():
    class Spec(Typed):
        node_name = fields.Number()
        containers = fields.Part(Container)

    declared = type_named("core.v1.PodSpec")
    assert list(wrong(Spec, declared, "spec")) == ["spec.nodeName: is text", "spec.containers: is a list"]
