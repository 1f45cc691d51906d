"""Rules of Kueue's webhook for a SparkApplication.

Source: kubernetes-sigs/kueue@ff69552e pkg/controller/jobs; functions are named like those there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_JOB
from webhook.facts.kueue.job_types import (
    SparkApplication,
)
from webhook.facts.kueue.managed import KueueManagement
from webhook.facts.subject import Subject
from webhook.problem import Problem

SPARK_MODE: Final = KUEUE_JOB.rule(
    "kueue-job/spark-mode",
    title="A SparkApplication that Kueue manages runs in cluster mode with a fixed number of executors.",
    why="Kueue counts the pods of the application once.",
    source="kubernetes-sigs/kueue@ff69552e pkg/controller/jobs/sparkapplication",
)


def validate_spark(subject: Subject, how: KueueManagement) -> Iterator[Problem]:
    """Yield the problems that the webhook of SparkApplication would report."""
    if how.framework != "sparkoperator.k8s.io/sparkapplication" or not how.queue:
        return
    spec = subject.typed(SparkApplication).spec
    if spec.has("mode") and spec.mode != "cluster":
        message = "must be cluster because Kueue manages only applications of this mode"
        yield SPARK_MODE.problem(spec.path("mode"), message, "set cluster", spec.json.get("mode"))
    if spec.dynamic_allocation.enabled:
        message = "must not be enabled because Kueue counts the executors only once"
        yield SPARK_MODE.problem(spec.dynamic_allocation.path("enabled"), message, "set it to false")
