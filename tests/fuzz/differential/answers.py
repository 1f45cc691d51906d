"""Answers to the reviews of an epoch: all from one long-lived process, and each from a fresh process.

A fresh process is forked for each review from a process that has loaded the policies and reviewed nothing. Both read the
same bytes and see the same cluster, without a deadline.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from msgspec import structs

from webhook import assembly
from webhook.admission.decode import decode_review_bytes
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Phase
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Verdict
from webhook.settings.shared import Settings

_FORK = get_context("fork")


@dataclass(frozen=True)
class View:
    """The objects of a cluster. In a complete cluster, the namespace of every request exists."""

    objects: tuple[JSON, ...]
    is_complete: bool

    def cluster(self) -> Cluster:
        held = FilesCluster(self.objects)
        return ClusterWithAssumedNamespaces(held) if self.is_complete else held


@dataclass(frozen=True)
class Step:
    """One review, and the number of the cluster's view for it."""

    body: bytes
    phase: Phase
    view: int


@dataclass(frozen=True)
class Epoch:
    policies: tuple[Path, ...]
    views: tuple[View, ...]
    steps: tuple[Step, ...]


def load(policies: Sequence[Path]) -> PolicySet:
    """Load policies and compile all their expressions.

    Raises:
        PolicyError: the mistakes of the policies.
    """
    loaded = assembly.assemble_policies_and_context(Settings(only=tuple(policies))).policies
    loaded.compile_ahead_of_requests()
    return loaded


def answer(step: Step, policies: PolicySet, cluster: Cluster) -> str:
    """Return the answer as text. An error of the evaluation is also an answer."""
    try:
        return _shown(answer_request(decode_review_bytes(step.body), policies, cluster, phase=step.phase))
    except Exception as error:  # noqa: BLE001 - both must give the same error
        return f"{type(error).__name__}: {error}"


def _shown(verdict: Verdict) -> str:
    """Return a verdict as text, without times and places of faults. The answer to an API server has a line, and each
    decision has one.
    """
    told = (verdict.allowed, verdict.status, verdict.warnings, verdict.patch, dict(verdict.audit_annotations))
    faults = [(fault.policy, fault.checks, fault.error) for fault in verdict.faults]
    decisions = [repr(structs.replace(decision, elapsed_s=0)) for decision in verdict.decisions]
    return "\n".join((repr(told), repr(faults), *decisions))


class Warm:
    """A process that answers one epoch after another, like a server that reloads its policies."""

    def __init__(self) -> None:
        self._connection, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_answer_epochs, args=(theirs,), daemon=True)
        self._process.start()

    def begin(self, epoch: Epoch) -> None:
        self._connection.send(epoch)

    def answers(self) -> list[str]:
        found: list[str] = self._connection.recv()
        return found

    def stop(self) -> None:
        self._connection.send(None)
        self._process.join()


def _answer_epochs(connection: Connection) -> None:
    while (epoch := connection.recv()) is not None:
        connection.send(list(warm_answers(epoch)))


def warm_answers(epoch: Epoch) -> Iterator[str]:
    yield from _in_turn(epoch, epoch.steps, load(epoch.policies))


def _in_turn(epoch: Epoch, steps: Sequence[Step], policies: PolicySet) -> Iterator[str]:
    number, cluster = -1, epoch.views[0].cluster()
    for step in steps:
        if step.view != number:
            number, cluster = step.view, epoch.views[step.view].cluster()
        yield answer(step, policies, cluster)


def fresh_answers(epoch: Epoch, cases: Sequence[Sequence[Step]]) -> list[str]:
    """Return the answer to the last step of each case. A new process answers the steps of a case in order."""
    connection, theirs = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_answer_in_children, args=(epoch, cases, theirs))
    process.start()
    theirs.close()
    try:
        found: list[str] = connection.recv()
    finally:
        process.join()
    return found


def _answer_in_children(epoch: Epoch, cases: Sequence[Sequence[Step]], connection: Connection) -> None:
    policies = load(epoch.policies)
    gc.collect()
    gc.freeze()
    connection.send([_in_child(epoch, steps, policies) for steps in cases])


def _in_child(epoch: Epoch, steps: Sequence[Step], policies: PolicySet) -> str:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            *_, last = _in_turn(epoch, steps, policies)
            with os.fdopen(writer, "w") as stream:
                stream.write(last)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return text or "the process of this review died"
