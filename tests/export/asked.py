"""Evaluates the matchConditions of the registered webhooks with our own engine, to say for which requests they are called.

`python -m tests.export.asked FILE…` prints how many Pods, and objects that create Pods, call a webhook. All objects
count as created.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

from tests.literals import GROUP, policies
from webhook import assembly
from webhook.admission import fixtures
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Attributes, Operation, Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.errors import CallError
from webhook.export.registrations import PLACES, webhook_registrations
from webhook.settings.shared import Settings

SHIPPED = assembly.assemble_policies_and_context(Settings()).policies
REGISTERED = {phase: webhook_registrations(SHIPPED, phase) for phase in Phase}
COMMON = frozenset().union(*(place.resources for place in PLACES))
CLUSTER = ClusterWithAssumedNamespaces(FilesCluster(()))


def _policy(name, webhook):
    """Return a policy that denies everything that passes the conditions of a webhook."""
    rules = [
        {
            "apiGroups": list(rule.groups),
            "apiVersions": list(rule.versions),
            "resources": list(rule.resources),
            "operations": list(rule.operations),
        }
        for rule in webhook.rules
    ]
    conditions = [{"name": name, "expression": text} for name, text in webhook.conditions]
    policy = {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": conditions,
            "validations": [{"expression": "false", "message": "asked"}],
        },
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    kind = {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicyBinding"}
    return [policy, {**kind, "metadata": {"name": name}, "spec": binding}]


CONDITIONS = {
    phase: policies(*(_policy(f"w-{number}", webhook) for number, webhook in enumerate(found.webhooks)))
    for phase, found in REGISTERED.items()
}


def is_common(attributes: Attributes) -> bool:
    resource = attributes.resource
    writes = attributes.operation in (Operation.CREATE, Operation.UPDATE)
    return (resource.group, resource.resource) in COMMON and not attributes.sub_resource and writes


def asked(attributes: Attributes, phase: Phase) -> bool:
    """Return whether an API server would call a webhook for the object. A condition that fails raises an error."""
    verdict = answer_request(attributes, CONDITIONS[phase], CLUSTER, phase=Phase.VALIDATE)
    failed = [each.message for each in verdict.decisions if each.evaluation == "error"]
    assert not failed, failed
    return not verdict.allowed


def main(paths: list[str]) -> None:
    from webhook.input import documents

    counts: Counter[str] = Counter()
    inputs = documents.read_documents(paths)
    submissions = fixtures.Submissions(assembly.assemble_policies_and_context(Settings()).files, SHIPPED.table.row)
    for document in inputs.documents:
        try:
            attributes = replace(submissions.of(document).attributes, is_decoded=True)
        except CallError:  # this document is not an object
            continue
        if is_common(attributes):
            counts[
                "validate"
                if asked(attributes, Phase.VALIDATE)
                else "mutate"
                if asked(attributes, Phase.MUTATE)
                else "skipped"
            ] += 1
    for name, count in counts.most_common():
        sys.stdout.write(f"{count:6} {count / counts.total():6.1%} {name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
