"""The typed template of a pod set."""

from tests.facts.subjects import subject
from webhook.facts.pods.pod_sets import pod_sets, template_of

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "team"},
    "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
}


def test_a_template_is_read_once_for_each_request_and_its_paths_begin_at_the_template():
    asked = subject(JOB)
    (podset,) = asked.once(pod_sets).all
    template = template_of(podset, asked)
    assert template_of(podset, asked) is template
    (container,) = template.spec.all_containers()
    assert podset.locate(container.at) == ("spec", "template", "spec", "containers", 0)
    assert template_of(podset, subject(JOB)) is not template
