"""Audits a live cluster. Lists the objects of every kind that policies apply to, and does not keep them in memory.

Objects that policies look up are watched, as in `claimgate serve`. A kind that cannot be listed does not stop the
audit of other kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, takewhile
from typing import Final
from zlib import crc32

from msgspec import Struct, field, structs

from webhook import assembly
from webhook.admission import fixtures
from webhook.admission.exceptions import is_ignored_by_configuration
from webhook.apimachinery.attributes import JSON, NAMESPACE, Attributes, Phase
from webhook.cluster import Cluster
from webhook.cluster.connection import Connection
from webhook.cluster.decoding import DEEPEST, is_too_deep
from webhook.cluster.live_objects import PAGE, ServedKind, objects_of_kind, served_kinds
from webhook.cluster.lookup import namespace_and_name
from webhook.commands.audit_part import (
    ObjectAudit,
    PartResult,
    Reviewed,
    decisions_of,
    has_unread_pods,
    qualified_kind,
)
from webhook.commands.audit_totals import AuditTotals
from webhook.commands.job_demands import add_demand, queue_trees
from webhook.commands.progress import Interrupts
from webhook.errors import CallError, ConfigurationError, InputProblem, LookupFailed
from webhook.evaluation.review_options import ReviewOptions
from webhook.export.webhook_rules import matched_resources_of_policies
from webhook.policy.policy_set import PolicySet
from webhook.report.finding import Finding, findings_of_object, subject_of_request
from webhook.report.formats import FINDINGS_AND_PASSES, RequiredContents
from webhook.report.queued_jobs import Demands, QueueTrees
from webhook.report.rule import Rules, RulesOfPolicies
from webhook.yamltext.source_line import Place

CLUSTER: Final = "the cluster"
"""The name of the file in problems about a cluster."""
_SHARD: Final = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")


class Shard(Struct, frozen=True):
    """A part of the objects of a cluster. An object belongs to the part of its UID, so all runs divide a cluster in
    the same way.
    """

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the part of a text. `2/5` is the third of five parts, and "" is the whole cluster.

        Raises:
            ConfigurationError: the text has another form, or the part does not exist.
        """
        match = _SHARD.fullmatch(text) if text else None
        shard = cls(int(match[1]), int(match[2])) if match else cls()
        if text and (match is None or shard.index >= shard.count):
            message = f"--shard: expected the part, from 0, and the number of parts, such as `0/4`, found `{text}`"
            raise ConfigurationError(message)
        return shard

    def has(self, uid: str) -> bool:
        return self.count == 1 or crc32(uid.encode()) % self.count == self.index


class LiveScope(Struct, frozen=True, kw_only=True):
    """The objects to audit: in these namespaces (all if empty), with these labels, in the part `shard`."""

    namespaces: Sequence[str] = ()
    selector: str = ""
    shard: Shard = field(default_factory=Shard)


class LiveCluster(Struct, frozen=True):
    """A cluster. `connection` lists the audited objects, and policies look up other objects in `view`."""

    connection: Connection
    view: Cluster


class LiveAudit:
    """Audits the objects of a cluster. `read` has group and name of each kind that was read completely."""

    size_bytes: Final = 0

    def __init__(
        self,
        assembled: assembly.ReviewAssembly,
        cluster: LiveCluster,
        scope: LiveScope,
        *,
        reviewed: Reviewed,
        details: ReviewOptions,
        address: str = "",
        contents: RequiredContents = FINDINGS_AND_PASSES,
    ) -> None:
        self.rules: Rules = RulesOfPolicies(assembled.policies, address)
        self._configuration = assembled.policies.configuration
        self._audit = ObjectAudit(assembled.policies, reviewed, details)
        self._cluster = cluster
        self._scope = scope
        self._contents = contents
        self._table = assembled.table
        self.read: set[tuple[str, str]] = set()
        self._is_list_cut = False

    def parts_with_findings(self, stop: Interrupts) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
        """Yield groups of objects of one kind with their findings, which must be read before the next group."""
        phases = (Phase.VALIDATE,) if self._audit.reviewed == "stored" else tuple(Phase)
        resources = {pair for phase in phases for pair in _resources_of_policies(self._audit.policies, phase)}
        try:
            kinds = list(served_kinds(self._cluster.connection, resources))
        except LookupFailed as error:
            yield PartResult(problems=[InputProblem(message=str(error), file=CLUSTER)]), ()
            return
        for kind in kinds:
            yield from self._audit_kind(kind, stop)

    def queue_trees(self, demands: Demands) -> Sequence[QueueTrees]:
        return queue_trees(self._cluster.view, demands)

    def finish(self, totals: AuditTotals, *, is_interrupted: bool) -> None:
        """Report notes about the cluster."""
        if not is_interrupted:
            totals.report_lack_of_objects((CLUSTER,), "the cluster has no objects in this scope")
        totals.finish((), is_interrupted=is_interrupted)

    def _audit_kind(self, kind: ServedKind, stop: Interrupts) -> Iterator[tuple[PartResult, Iterable[Finding]]]:
        read, has_problems, self._is_list_cut = self._list_objects_in_scope(kind), False, False
        while True:
            result = PartResult()
            try:
                first = next(read, None)
            except LookupFailed as error:
                result.problems.append(_problem_of_unreadable_kind(kind, str(error)))
                yield result, ()
                return
            if first is None:
                if not has_problems:
                    self.read.add((kind.kind.group, kind.kind.kind))
                return
            page = chain((first,), islice(read, PAGE - 1))
            yield result, self._audit_page(kind, takewhile(lambda _: not stop.is_set, page), result)
            has_problems = has_problems or bool(result.problems)
            if self._is_list_cut:
                return

    def _list_objects_in_scope(self, kind: ServedKind) -> Iterator[JSON]:
        """A scope with namespaces has no cluster-scoped objects."""
        scope = self._scope
        if scope.namespaces and not kind.resource.is_namespaced:
            return
        for namespace in scope.namespaces or ("",):
            objects = objects_of_kind(self._cluster.connection, kind, namespace=namespace, selector=scope.selector)
            yield from (obj for obj in objects if scope.shard.has(_uid_of_object(obj)))

    def _audit_page(self, kind: ServedKind, page: Iterable[JSON], result: PartResult) -> Iterator[Finding]:
        try:
            for obj in page:
                yield from self._audit_object(kind, obj, result)
        except LookupFailed as error:
            result.problems.append(_problem_of_unreadable_kind(kind, str(error)))
            self._is_list_cut = True

    def _audit_object(self, kind: ServedKind, obj: JSON, result: PartResult) -> Iterator[Finding]:
        if is_too_deep(obj):
            namespace, name = namespace_and_name(obj)
            message = f"{'/'.join(filter(None, (namespace, name)))} is nested deeper than {DEEPEST} levels"
            result.problems.append(_problem_of_unreadable_kind(kind, f"{message}, so it is not audited"))
            return
        try:
            attributes = _request_for_object(obj, kind)
        except CallError as error:
            result.problems.append(_problem_of_unreadable_kind(kind, error.message))
            return
        result.entries += 1
        outcome = self._audit.run_policies_on_object(attributes, self._cluster.view)
        decisions = decisions_of(outcome)
        if self._contents.queues:
            add_demand(result.demands, attributes, outcome, self._cluster.view, self._audit.policies)
        if not decisions:
            if is_ignored_by_configuration(attributes, self._configuration, self._cluster.view):
                result.ignored += 1
            else:
                result.unasked[qualified_kind(attributes.kind)] += 1
        where = "/".join(filter(None, (attributes.namespace, kind.resource.plural, attributes.name)))
        finding_subject = subject_of_request(attributes)
        if decisions and has_unread_pods(attributes, self._table):
            result.pods_not_read[qualified_kind(attributes.kind)] += 1
            finding_subject = structs.replace(finding_subject, has_unread_pods=True)
        findings = findings_of_object(
            decisions,
            finding_subject,
            lambda _, __: Place(file=where),
            self.rules,
            with_passes=self._contents.passes and not finding_subject.has_unread_pods,
        )
        result.exceptions.update(finding.exception_reason for finding in findings if finding.exception_reason)
        yield from findings


def _problem_of_unreadable_kind(kind: ServedKind, reason: str) -> InputProblem:
    return InputProblem(message=f"{qualified_kind(kind.kind)}: {reason}", file=CLUSTER)


def _resources_of_policies(policies: PolicySet, phase: Phase) -> Iterator[tuple[str, str]]:
    """Sub-resources are left out."""
    for _, matched in matched_resources_of_policies(policies, phase):
        if "/" not in matched.resource:
            yield matched.group, matched.resource


def _request_for_object(obj: JSON, kind: ServedKind) -> Attributes:
    attributes = fixtures.attributes_of_object(obj)
    namespace = obj["metadata"].get("namespace") or (attributes.name if kind.kind == NAMESPACE else "")
    return replace(attributes, resource=kind.gvr, request_resource=kind.gvr, namespace=namespace)


def _uid_of_object(obj: JSON) -> str:
    return str((obj.get("metadata") or {}).get("uid") or "")
