"""The schemas of the kinds of claimgate.dev are structural, and accept what the models accept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from webhook.manifests.claimgate_kinds import KINDS, SPECS
from webhook.manifests.custom_resource_definitions import custom_resource_definitions

BY_KIND = {each["spec"]["names"]["kind"]: each for each in custom_resource_definitions()}


def schema(kind: str) -> Any:
    (version,) = BY_KIND[kind]["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def nodes(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, node
    for name, each in node.get("properties", {}).items():
        yield from nodes(each, f"{path}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_has_one_type_and_a_bound(kind: str) -> None:
    """API servers demand this of structural schemas, and refuse `$ref` and `anyOf` of types."""
    for path, node in nodes(schema(kind)["properties"]["spec"]):
        assert isinstance(node["type"], str), path
        assert not {"$ref", "anyOf", "title", "default"} & node.keys(), path
        if node["type"] == "array":
            assert node["maxItems"], path
        if node["type"] == "string":
            assert "enum" in node or "maxLength" in node, path
        assert set(node.get("required", ())) <= set(node.get("properties", ())), path


@pytest.mark.parametrize("kind", KINDS)
def test_the_fields_are_those_of_the_model(kind: str) -> None:
    fields = {field.alias for field in SPECS[kind].model_fields.values()}
    assert set(schema(kind)["properties"]["spec"]["properties"]) == fields


def test_conditions_are_merged_by_their_types() -> None:
    """Two writers each own a condition, so neither may remove the condition of the other."""
    conditions = schema("ValidatingPolicy")["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_printer_columns_show_the_conditions() -> None:
    (version,) = BY_KIND["ValidatingPolicy"]["spec"]["versions"]
    assert [each["name"] for each in version["additionalPrinterColumns"]] == [
        "Compiled",
        "Registered",
        "Portable",
        "Age",
    ]
    assert version["subresources"] == {"status": {}}


def test_no_short_name_or_category_is_also_used_by_kyverno() -> None:
    """`kubectl get vpol` must still list Kyverno's objects, whose kinds have the same names."""
    of_kyverno = {"vpol", "mpol", "gpol", "dpol", "ivpol", "nvpol", "nmpol", "polex", "cpol", "pol", "kyverno"}
    names = [each["spec"]["names"] for each in custom_resource_definitions()]
    assert not of_kyverno & {word for each in names for word in (*each["shortNames"], *each["categories"])}
    assert len({each["shortNames"][0] for each in names}) == len(names)
