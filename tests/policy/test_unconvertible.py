"""A policy may register the webhook for a version that cannot be converted for another policy. This is reported before
the first review."""

from tests.literals import policies, shipped_policies, validating
from tests.rows import all_rows
from webhook.policy.pitfalls import unconvertible_resources

WIDGETS = ("example.com", "widgets")
CLAIMS = ("resource.k8s.io", "resourceclaims")
SCALERS = ("autoscaling", "horizontalpodautoscalers")
TOLD = (
    "because of policy other, API servers send {1} in version {0}, which claimgate cannot convert to {2}: "
    "also name {3} in matchConstraints"
)


def named(name, of, versions, bound=True, **spec):
    rule = {"apiGroups": [of[0]], "apiVersions": versions, "operations": ["*"], "resources": [of[1]]}
    found = validating("true", name=name, rule=rule, **spec)
    return found if bound else found[:1]


@all_rows(
    ("ours", "theirs", "expected"),
    {
        "another version of a custom kind": (
            named("ours", WIDGETS, ["v1beta1"]),
            named("other", WIDGETS, ["v1"]),
            [TOLD.format("v1", "widgets.example.com", "v1beta1", "v1")],
        ),
        "another version of a kind of Kubernetes": (
            named("ours", SCALERS, ["v2"]),
            named("other", SCALERS, ["v1"]),
            [TOLD.format("v1", "horizontalpodautoscalers.autoscaling", "v2", "v1")],
        ),
        "a version that claimgate converts": (named("ours", CLAIMS, ["v1beta1"]), named("other", CLAIMS, ["v1"]), []),
        "the same version": (named("ours", WIDGETS, ["v1"]), named("other", WIDGETS, ["v1"]), []),
        "both versions": (named("ours", WIDGETS, ["v1", "v1beta1"]), named("other", WIDGETS, ["v1"]), []),
        "a policy without a binding": (
            named("ours", WIDGETS, ["v1beta1"]),
            named("other", WIDGETS, ["v1"], bound=False),
            [],
        ),
        "a version that the kind does not have": (
            named("ours", ("kubeflow.org", "pytorchjobs"), ["v1"]),
            named("other", ("kubeflow.org", "pytorchjobs"), ["v2beta1"]),
            [],
        ),
    }.values(),
)
def test_a_version_that_cannot_be_converted_is_reported(ours, theirs, expected):
    loaded = policies(ours, theirs)
    assert [
        text for policy in loaded.policies if policy.name == "ours" for text in unconvertible_resources(policy, loaded)
    ] == expected


def test_shipped_policies_have_no_unproven_condition():
    loaded = shipped_policies()
    assert [text for policy in loaded.policies for text in unconvertible_resources(policy, loaded)] == []
