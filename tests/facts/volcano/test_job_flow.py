"""The JobTemplates that a JobFlow names, and the refused Jobs that they create."""

from __future__ import annotations

import pytest

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.volcano.job_flow import check_job_flow

FLOW = {
    "apiVersion": "flow.volcano.sh/v1alpha1",
    "kind": "JobFlow",
    "metadata": {"name": "f"},
    "spec": {"flows": [{"name": "train"}]},
}


def template(**task: JSON) -> JSON:
    pod = {"containers": [{"name": "a", "image": "x"}]}
    tasks = [{"name": "a", "template": {"spec": pod}, **task}]
    spec = {"queue": "default", "tasks": tasks, "minAvailable": 2}
    metadata = {"name": "train", "namespace": "default"}
    return {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("replicas", "codes"),
    [(2, []), (1, ["volcano-job-flow/job-refused"]), ("${REPLICAS}", [])],
    ids=["enough pods", "too few pods", "a number that is filled in later"],
)
def test_a_job_of_a_template_gets_the_verdict_on_the_created_job(replicas: JSON, codes: list[str]) -> None:
    about = subject({**FLOW, "metadata": {"name": "f", "namespace": "default"}}, template(replicas=replicas))
    assert [problem.code for problem in check_job_flow(about)] == codes
