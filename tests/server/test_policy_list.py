"""/debug/policies lists the policies in use, without contents of parameters and objects."""

from __future__ import annotations

from tests.literals import shipped_policies
from webhook.server.pages import policy_row


def test_every_policy_has_a_row_of_names_and_settings() -> None:
    rows = {policy.name: policy_row(policy) for policy in shipped_policies().policies}
    assert all(row["name"] == name for name, row in rows.items())
    row = rows["claims-exactly-one"]
    assert (row["kind"], row["failurePolicy"], row["phase"], row["concerns"]) == (
        "validating",
        "Fail",
        "validate",
        ("claims",),
    )
    assert (row["resources"], row["file"]) == (["pods"], "policy.yaml")
    assert rows["kueue-jobs"]["anyPod"] == ("kueue-not-now/queue-required",)
    assert rows["kueue-jobs"]["bindings"][0] == {
        "name": "kueue-jobs",
        "validationActions": ("Deny",),
        "param": "claimgate-system/kueue",
    }
