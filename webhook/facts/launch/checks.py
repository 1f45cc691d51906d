"""The checks of commands that start training processes, in every kind with pods.

Most pods run no launcher, so the modules of the rules are imported only if a pod may run one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.dra.pod_claims import LOOKUPS
from webhook.facts.kinds import LEADER_WORKER_SET, TRAIN_JOB
from webhook.facts.launch.member import INDEXED, KUBEFLOW, UNRELATED, may_run_launcher
from webhook.facts.subject import Check, Subject
from webhook.facts.volcano_objects import types
from webhook.rules.problem import Problem

_OPERATORS: Final = frozenset((KUBEFLOW, kind) for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"))


def check_launch_commands(subject: Subject) -> Iterator[Problem]:
    """Yield every warning about what the containers of an object start."""
    if subject.group_kind not in UNRELATED or may_run_launcher(subject):
        from webhook.facts.launch.commands_of_kinds import warn_of_launch_commands

        yield from warn_of_launch_commands(subject)


def check_command_of_train_job(subject: Subject) -> Iterator[Problem]:
    """Yield every warning about what the training container of a TrainJob starts."""
    from webhook.facts.launch.commands_of_kinds import check_launch_of_train_job

    yield from check_launch_of_train_job(subject)


def check_variables_of_worker_sets(subject: Subject) -> Iterator[Problem]:
    """Yield a warning about each variable that LeaderWorkerSet overwrites."""
    from webhook.facts.launch import commands_of_kinds

    yield from commands_of_kinds.check_variables_of_worker_sets(subject)


CHECKS: Final = (
    Check(
        group="launch",
        run=check_launch_commands,
        kinds=frozenset((*UNRELATED, *INDEXED, *_OPERATORS, *types.SPECS, LEADER_WORKER_SET)),
        lookups=LOOKUPS,
        of_made_objects=False,
    ),
    Check(
        group="launch",
        run=check_variables_of_worker_sets,
        kinds=frozenset((LEADER_WORKER_SET, ("disaggregatedset.x-k8s.io", "DisaggregatedSet"))),
        of_made_objects=False,
    ),
    Check(group="launch", run=check_command_of_train_job, kinds=frozenset((TRAIN_JOB,))),
)
