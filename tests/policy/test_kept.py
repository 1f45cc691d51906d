"""A reload compiles what changed, and nothing else; what is served is what a first load would serve."""

from __future__ import annotations

import pytest
import yaml

from tests.literals import OPTIONS, validating
from webhook.errors import PolicyError
from webhook.policy.kept import Kept
from webhook.policy.load import load


def write(folder, name, *rules):
    (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(validating(*rules, name=name)))


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "one", "object.metadata.name == 'a'")
    write(tmp_path, "two", "object.metadata.name == 'b'")
    return tmp_path


def bodies(policies):
    return {policy.name: policy.body for policy in policies.policies}


def test_only_the_changed_policy_is_compiled_again(folder) -> None:
    kept = Kept()
    before = bodies(load([folder], OPTIONS, kept))
    write(folder, "two", "object.metadata.name == 'c'")
    again = load([folder], OPTIONS, kept)
    after = bodies(again)
    assert after["one"] is before["one"]
    assert after["two"] is not before["two"]
    assert again.policies[1].rules[0].expression.source == "object.metadata.name == 'c'"


def test_a_file_of_another_name_is_another_one(folder) -> None:
    kept = Kept()
    load([folder], OPTIONS, kept)
    (folder / "one.yaml").rename(folder / "renamed.yaml")
    assert load([folder], OPTIONS, kept).policies[0].file.endswith("renamed.yaml")


def test_what_is_gone_is_forgotten(folder) -> None:
    kept = Kept()
    before = bodies(load([folder], OPTIONS, kept))
    text = (folder / "one.yaml").read_text()
    (folder / "one.yaml").unlink()
    assert list(bodies(load([folder], OPTIONS, kept))) == ["two"]
    (folder / "one.yaml").write_text(text)
    assert bodies(load([folder], OPTIONS, kept))["one"] is not before["one"]


def test_mistakes_are_told_in_each_load(folder) -> None:
    kept = Kept()
    write(folder, "two", "object.metadata.nam(")
    for _ in range(2):
        with pytest.raises(PolicyError) as told:
            load([folder], OPTIONS, kept)
        assert len(told.value.problems) == 1
    write(folder, "two", "true")
    assert load([folder], OPTIONS, kept).policies[1].rules[0].expression.source == "true"


def test_bindings_are_joined_anew(folder) -> None:
    kept = Kept()
    load([folder], OPTIONS, kept)
    (folder / "two.yaml").write_text(yaml.safe_dump_all(validating("object.metadata.name == 'b'", name="two")[:1]))
    assert load([folder], OPTIONS, kept).unbound == ("two",)
