"""A new fact is a package with `fact.py`, and a row in the list of packages: nothing else knows of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import webhook.facts
from tests.literals import job, policies, request, validating
from webhook.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.errors import PolicyError
from webhook.evaluation.validating import validate
from webhook.facts import reference, registry
from webhook.policy.interests import interests

FACT = '''
"""The fact `quota`."""

from webhook.attributes import GroupVersionKind
from webhook.cel.types import BOOL, STRING
from webhook.cluster.interest import reading
from webhook.facts.fact import Fact, Result, structure

KIND = GroupVersionKind("example.com", "v1", "Quota")
QUOTA = structure("Quota", name=(STRING, "of the quota"), found=(BOOL, "whether it is there"))


def compute(subject):
    view, name = subject.view(), subject.object["metadata"]["name"]
    found = view.of("found").get(KIND, name) is not None
    return Result({"name": name, "found": found}, view.missing())


FACTS = (
    Fact(
        name="quota",
        about="The quota of the same name.",
        examples=("quota.found",),
        type=QUOTA.type,
        structures=(QUOTA,),
        compute=compute,
        lookups=(reading(KIND, "spec.hard"),),
    ),
)
'''


@pytest.fixture
def quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package of the new fact, and its row."""
    (tmp_path / "quota").mkdir()
    (tmp_path / "quota" / "fact.py").write_text(FACT)
    row = registry.Package(name="quota", facts=("quota",))
    monkeypatch.setattr(webhook.facts, "__path__", [*webhook.facts.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "PACKAGES", (*registry.PACKAGES, row))


RULE = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}


@pytest.mark.usefixtures("quota")
def test_a_policy_reads_a_new_fact() -> None:
    rule = 'quota.found && quota.name == "j"'
    found = policies(validating(rule, annotations={"facts": "quota"}, rule=RULE))
    quota = {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": {"name": "j", "namespace": "team"}}
    for objects, action in (([quota], "admit"), ([], "deny")):
        (decision,) = validate(request(job()), found, FilesCluster(objects), Phase.VALIDATE)
        assert decision.action == action
    assert "example.com" in {each.gvk.group for each in interests(found.policies)}
    assert "## quota" in reference.markdown()


@pytest.mark.usefixtures("quota")
def test_a_misspelt_field_of_it_is_found_when_the_policy_is_loaded() -> None:
    with pytest.raises(PolicyError, match="undefined field 'size'"):
        policies(validating("quota.size", annotations={"facts": "quota"}, rule=RULE))
