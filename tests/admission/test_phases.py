"""One request goes through the phases in this process, with the time limit of a webhook call."""

from tests.literals import pod, policies, request, validating
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.cluster.files import FilesCluster


def test_a_review_that_runs_out_of_time_fails_as_in_a_cluster():
    local = LocalAnswerer(policies=policies(validating("true")), cluster=FilesCluster(), timeout_s=-1)
    (decision,) = run_phases(request(pod()), "validate", local).verdict.decisions
    assert (decision.evaluation, decision.action) == ("error", "deny")
    assert decision.message.endswith("operation interrupted")


def test_ordinary_reviews_have_time_enough():
    local = LocalAnswerer(policies=policies(validating("true")), cluster=FilesCluster())
    assert run_phases(request(pod()), "auto", local).verdict.allowed
