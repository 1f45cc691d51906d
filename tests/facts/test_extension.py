"""A new fact is a package with `fact.py`, and a row in the list of packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts import facts_page
from tests.literals import job, policies, request, validating
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.errors import PolicyError
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.facts.packages import FactPackage
from webhook.facts.subject import SHIPPED, FactRegistry
from webhook.policy.interests import interests_of_policies

FACT = '''
"""The fact `quota`."""

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cel.types import BOOL, STRING
from webhook.cluster.interest import interest_in_fields
from webhook.facts.fact import FactResult, declare_structure
from webhook.facts.subject import Fact

KIND = GroupVersionKind("example.com", "v1", "Quota")
QUOTA = declare_structure("Quota", name=(STRING, "of the quota"), found=(BOOL, "whether it exists"))


def compute(subject):
    view, name = subject.cluster_view(), subject.object["metadata"]["name"]
    found = view.for_fields("found").get(KIND, name) is not None
    return FactResult({"name": name, "found": found}, view.missing_objects_by_field())


FACTS = (
    Fact(
        name="quota",
        about="The quota of the same name.",
        examples=("quota.found",),
        type=QUOTA.type,
        structures=(QUOTA,),
        compute=compute,
        lookups=(interest_in_fields(KIND, "spec.hard"),),
    ),
)
'''


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FactRegistry:
    (tmp_path / "quota").mkdir()
    (tmp_path / "quota" / "fact.py").write_text(FACT)
    monkeypatch.syspath_prepend(tmp_path)
    return FactRegistry((*SHIPPED.packages, FactPackage(module="quota", facts=("quota",))))


RULE = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}


def test_a_policy_reads_a_new_fact(registry: FactRegistry) -> None:
    rule = 'quota.found && quota.name == "j"'
    found = policies(validating(rule, annotations={"facts": "quota"}, rule=RULE), registry=registry)
    quota = {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": {"name": "j", "namespace": "team"}}
    for objects, action in (([quota], "admit"), ([], "deny")):
        (decision,) = validating_decisions(
            request_context(found, request(job()), FilesCluster(objects)), Phase.VALIDATE
        )
        assert decision.action == action
    assert "example.com" in {each.gvk.group for each in interests_of_policies(found.policies, registry)}
    assert "## quota" in facts_page.facts_as_markdown(registry)


def test_a_misspelt_field_of_a_new_fact_is_found_when_the_policy_is_loaded(registry: FactRegistry) -> None:
    with pytest.raises(PolicyError, match="undefined field 'size'"):
        policies(validating("quota.size", annotations={"facts": "quota"}, rule=RULE), registry=registry)
