"""Before a long search, a review reserves its time. If the slice cannot cover it, the review moves to a worker."""

from __future__ import annotations

import re

import pytest

from tests.literals import request, shipped_policies
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import InlineBudgetSpent
from webhook.typed.pods import Container
from webhook.typed.view import ReadingContext

LONG = "a.b-" * 100_000
ENOUGH_S = 0.01


class Refusing(Deadline):
    def __init__(self) -> None:
        super().__init__(overrun=InlineBudgetSpent)

    def check_clock_before_slow_call(self, seconds: float) -> None:
        if seconds > ENOUGH_S:
            raise InlineBudgetSpent


def container(**fields):
    base = {
        "name": "main",
        "image": "vllm/vllm-openai:v1",
        "ports": [{"containerPort": 8000}],
        "livenessProbe": {"httpGet": {"port": 8000}},
        "resources": {"limits": {"nvidia.com/gpu": 2}},
    }
    return {**base, **fields}


@pytest.mark.parametrize(
    "fields",
    [
        {"image": LONG},
        {"args": [LONG]},
        {"command": ["bash", "-c", LONG]},
        {"env": [{"name": "MODEL", "value": LONG}]},
        {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", LONG]}}}},
    ],
    ids=["image", "argument", "script", "variable", "preStop"],
)
def test_a_review_with_a_long_text_leaves_the_event_loop(fields):
    pods = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container(**fields)]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": pods}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    with pytest.raises(InlineBudgetSpent):
        answer_request(
            request(deployment), shipped_policies(), FilesCluster(), phase=Phase.VALIDATE, deadline=Refusing()
        )


def test_a_review_of_a_job_with_a_long_name_leaves_the_event_loop():
    pods = {"spec": {"terminationGracePeriodSeconds": 0, "containers": [container()]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": LONG}, "spec": {"template": pods}}
    with pytest.raises(InlineBudgetSpent):
        answer_request(request(job), shipped_policies(), FilesCluster(), phase=Phase.VALIDATE, deadline=Refusing())


def test_a_search_of_many_short_texts_reads_the_clock():
    main = Container.of(container(args=["word"] * 1000), (), ReadingContext(Deadline(-1.0, InlineBudgetSpent)))
    with pytest.raises(InlineBudgetSpent):
        main.is_found_in(re.compile("none"), main.words)


def test_a_pattern_matches_across_the_words_of_a_command_line():
    main = Container.of(container(command=["ray"], args=["start"]))
    assert main.runs(re.compile("ray start"))
    assert not main.runs(re.compile("start ray"))
    assert not main.is_found_in(re.compile("ray start"), main.words)
