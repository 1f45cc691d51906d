"""One request goes through the phases in this process, with the time limit of a webhook call."""

import time

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


class SlowToRead(FilesCluster):
    """Files whose reading waits for other processes, as on a busy machine."""

    def get(self, *names):
        time.sleep(0.3)
        return super().get(*names)


def test_a_review_on_a_busy_machine_may_wait_longer_than_its_limit():
    busy = SlowToRead([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}])
    reading = policies(validating("namespaceObject.metadata.name == 'team'"))
    local = LocalAnswerer(policies=reading, cluster=busy, timeout_s=0.2)
    assert run_phases(request(pod()), "validate", local).verdict.allowed
