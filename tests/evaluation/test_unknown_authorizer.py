"""If a question to `authorizer` has no answer, the result is unknown: neither a denial nor an error."""

from __future__ import annotations

import pytest

from tests.literals import mutating, namespace, pod, policies, request, validating
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cel.library.authorizer import ListedAuthorizer
from webhook.cluster.files import FilesCluster

CLUSTER = FilesCluster([namespace()])
ASKS = "authorizer.group('').resource('pods').namespace('team').check('create').allowed()"
ASKING = {
    "a validation": validating(ASKS),
    "a variable": validating("variables.may", variables=[{"name": "may", "expression": ASKS}]),
    "a variable that is read twice": validating(
        "has(variables.may) || variables.may", variables=[{"name": "may", "expression": ASKS}]
    ),
    "a matchCondition": validating("false", matchConditions=[{"name": "may", "expression": ASKS}]),
    "a mutation": mutating(f"[JSONPatch{{op: 'add', path: '/metadata/labels', value: {{'a': string({ASKS})}}}}]"),
}


@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
@pytest.mark.parametrize("asking", ASKING.values(), ids=ASKING)
def test_a_policy_that_needs_an_unknown_authorizer_is_not_evaluated(asking: list, failure: str) -> None:
    asking[0]["spec"]["failurePolicy"] = failure
    phase = Phase.MUTATE if asking[0]["kind"].startswith("Mutating") else Phase.VALIDATE
    verdict = answer_request(request(pod(containers=[])), policies(asking), CLUSTER, phase=phase)
    (decision,) = verdict.decisions
    assert (decision.evaluation, verdict.allowed) == ("unknown", True)
    assert "no decision is given for" in decision.message


def test_another_mistake_is_an_error() -> None:
    loaded = policies(validating(f"object.spec.absent == 1 || {ASKS}", failurePolicy="Fail"))
    whole = ListedAuthorizer([{"allowed": True}])
    verdict = answer_request(request(pod()), loaded, CLUSTER, phase=Phase.VALIDATE, authorizer=whole)
    assert [each.evaluation for each in verdict.decisions] == ["admit"]
    loaded = policies(validating("object.spec.absent == 1", failurePolicy="Fail"))
    verdict = answer_request(request(pod()), loaded, CLUSTER, phase=Phase.VALIDATE)
    assert [each.evaluation for each in verdict.decisions] == ["error"]
