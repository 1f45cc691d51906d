"""workload-updates matches exactly the kinds in which a changed template affects only later pods."""

from pathlib import Path

from tests.yamldata import document
from webhook.input import shipped
from webhook.workloads import table


def test_the_rules_name_the_kinds_with_templates_that_affect_only_later_pods() -> None:
    policy = document(Path(shipped.policies_folder()) / "workload-updates" / "policy.yaml")
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    named = [
        (group, version, name)
        for rule in rules
        for group in rule["apiGroups"]
        for version in rule["apiVersions"]
        for name in rule["resources"]
    ]
    rows = [row for row in table.load_table().rows if row.templates == "later"]
    assert sorted(named) == sorted((row.group, version, row.resource) for row in rows for version in row.versions)
