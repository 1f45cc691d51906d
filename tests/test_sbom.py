"""The bill of materials names every locked package, with the hashes that pip checks."""

import json

import pytest

from tests.sbom import bill_of_materials, declared, locked, normalised


@pytest.fixture(scope="module")
def text():
    return bill_of_materials()


@pytest.mark.slow
def test_the_bill_has_every_locked_package_with_version_and_hashes(text):
    components = {
        normalised(one["name"]): (
            one["version"],
            {each["content"] for reference in one["externalReferences"] for each in reference["hashes"]},
        )
        for one in json.loads(text)["components"]
    }
    assert components == locked()
    assert len(components) > 40


@pytest.mark.slow
def test_the_application_depends_on_what_it_declares(text):
    made = json.loads(text)
    names = {one["bom-ref"]: normalised(one["name"]) for one in made["components"]}
    root = made["metadata"]["component"]
    assert (root["name"], root["licenses"][0]["license"]["id"]) == ("claimgate", "Apache-2.0")
    (of_root,) = (one for one in made["dependencies"] if one["ref"] == root["bom-ref"])
    assert {names[each] for each in of_root["dependsOn"]} == declared()


@pytest.mark.slow
def test_the_bill_does_not_depend_on_the_time(text):
    assert bill_of_materials() == text
