"""The group of rules of this package, functions that recognize trials, and the policies of Volcano Jobs."""

from __future__ import annotations

import re
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.volcano_objects.types import LifecyclePolicy
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import Parts
from webhook.typed.objects import Metadata
from webhook.typed.pods import Container
from webhook.typed.view import Typed

DEVICE_FAILURES: Final = RuleGroup(
    "device-failures",
    source="https://kubernetes.io/blog/2025/07/03/navigating-failures-in-pods-with-devices/",
    level="warn",
    level_in_tests="advice",
    fails="disruption",
)
"""Rules about what a workload with devices does when a node, a device or a container fails."""


_NAMES_TRIAL: Final = re.compile(
    r"(?i)(?<![a-z])([nr]ccl|tests?|bench(mark(s|ing)?|es)?|preflight|smoke|all[-_]?(reduce|gather))(?![a-z])"
)
"""Parts of the name of an object or of a container that a person starts as a trial."""
RUNS_TEST: Final = re.compile(
    r"(?i)(?<![a-z])([nr]ccl[-_]?(tests?|bench)|(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv|broadcast"
    r"|reduce|gather|scatter|hypercube)_(perf|bench)|osu_[a-z]{2,20}|ib_[a-z]{4,8}_(bw|lat)|preflight|bench(mark)?s?"
    r"|tests?([-_]\w{1,100}+)?\.(py|sh))(?![a-z])"
)
"""Parts of a command that only tests devices or their network. The pattern never reads to the end of the text from
every position, because users choose the text.
"""


class VolcanoJobOrTask(Typed):
    """A Job of Volcano, or a task of a Job."""

    policies = Parts(LifecyclePolicy)


def is_named_as_trial(metadata: Metadata) -> bool:
    """Return whether the name of an object says that a person starts the object as a trial: a test or a benchmark.

    After a failure, the person starts the object again. No client needs the object.
    """
    return metadata.is_found_in(_NAMES_TRIAL, (metadata.name,))


def is_trial(container: Container, subject: Subject) -> bool:
    """Return whether a name, the image or the command shows that a person starts the container as a trial."""
    if is_named_as_trial(subject.metadata) or container.is_found_in(_NAMES_TRIAL, (container.name,)):
        return True
    image = container.image.rpartition("/")[2]
    return container.runs(RUNS_TEST) or container.is_found_in(RUNS_TEST, (image,))
