"""Publishes a report in the cluster for each object with findings.

An unchanged report is not written. A report has its object as owner, so Kubernetes deletes the report with the object.
The end of a run deletes reports of objects without findings.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.connection import Connection, ServerRefused
from webhook.cluster.discovery import Discovery, ServedResource
from webhook.cluster.live_objects import ServedKind, objects_of_kind
from webhook.commands.audit_live import CLUSTER, LiveScope
from webhook.errors import ConfigurationError, InputProblem, LookupFailed
from webhook.report.finding import Finding, Result
from webhook.report.formats import PublishedFormat
from webhook.report.policyreport import DIGEST, MANAGED_BY, NAME, OPEN_REPORTS, POLICY_REPORT, ReportApi, object_report
from webhook.text.wording import counted

APIS: Final[Mapping[PublishedFormat, ReportApi]] = {"policyreport": POLICY_REPORT, "openreports": OPEN_REPORTS}
WRITES_PER_S: Final = 20.0
"""The most writes per second of one run, as for busy controllers (QPS of client-go)."""
WRITE_S: Final = 10.0
"""The most seconds of one write."""
_MOST_NAMED: Final = 10
"""Errors are shown for at most this many unwritten reports."""
_MOST_UNANSWERED: Final = 5
"""After this many writes in a row without an answer, the run tries no more writes."""


class ReportPublisher:
    """Writes the reports of a run. A refused report does not stop other reports."""

    def __init__(
        self,
        connection: Connection,
        api: ReportApi,
        scope: LiveScope,
        *,
        fails_only: bool,
        read: Collection[tuple[str, str]],
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Read the reports that earlier runs have left.

        Args:
            connection: the API server.
            api: the kinds of reports.
            scope: which objects are audited. Reports about other objects are not changed.
            fails_only: whether an object that passes every policy gets no report.
            read: group and name of each kind that was read completely. The set is complete only at the end. Reports
                about other kinds are not removed.
            wait: waits for a number of seconds.

        Raises:
            ConfigurationError: the kinds of reports are not served, or cannot be read.
        """
        self._connection = connection
        self._api = api
        self._scope = scope
        self._fails_only = fails_only
        self._read = read
        self._wait = wait
        self._kinds = {kind: _served_report_kind(connection, api, kind) for kind in (api.namespaced, api.cluster)}
        try:
            self._before = {
                _name_of_report(report): _path_owner_and_digest(report) for report in self._previous_reports()
            }
        except LookupFailed as error:
            raise ConfigurationError(f"--publish: {error}") from None
        self._object: list[Finding] = []
        self._published: set[str] = set()
        self._failures: list[str] = []
        self._unanswered = 0
        self._counts: Counter[str] = Counter()

    @property
    def summary(self) -> str:
        """Return a sentence with the numbers of reports by outcome."""
        counts = [f"{self._counts[outcome]} {outcome}" for outcome in ("written", "unchanged", "removed")]
        counts += [
            f"{self._counts[outcome]} {outcome}"
            for outcome in ("refused", "unanswered", "not tried")
            if self._counts[outcome]
        ]
        return f"reports in the cluster: {', '.join(counts)}"

    def add_finding(self, finding: Finding) -> None:
        """Add a finding. The findings of one object must follow each other."""
        if self._object and self._object[0].subject != finding.subject:
            self._publish_report_of_object()
        self._object.append(finding)

    def finish_and_remove_stale_reports(self, *, is_interrupted: bool) -> Sequence[InputProblem]:
        """Write the last report, and remove the reports of objects without findings.

        Reports are removed only if the run read all objects: not after an interruption or with a selector.
        """
        self._publish_report_of_object()
        if not is_interrupted and not self._scope.selector:
            for name, (path, owner, _) in self._before.items():
                if name not in self._published and owner in self._read:
                    self._run_write_and_count("removed", path, partial(self._connection.delete, path, WRITE_S))
        lines = list(self._failures)
        if more := self._counts["refused"] + self._counts["unanswered"] - len(lines):
            lines.append(f"{counted(more, 'further report')} not written or removed")
        if self._counts["not tried"]:
            lines.append(f"the API server does not answer: {counted(self._counts['not tried'], 'report')} not tried")
        return [InputProblem(message=f"--publish: {each}", file=CLUSTER) for each in lines]

    def _publish_report_of_object(self) -> None:
        findings, self._object = [each for each in self._object if self._includes_finding(each)], []
        if not findings or not findings[0].subject.uid:
            return
        report = object_report(findings, self._api)
        name, digest = report["metadata"]["name"], report["metadata"]["annotations"][DIGEST]
        self._published.add(name)
        if name in self._before and self._before[name][2] == digest:
            self._counts["unchanged"] += 1
        else:
            path = self._path_of_report(report)
            self._run_write_and_count("written", path, partial(self._connection.apply, path, report, NAME, WRITE_S))

    def _run_write_and_count(self, what: str, path: str, write: Callable[[], object]) -> None:
        if self._unanswered >= _MOST_UNANSWERED:
            self._counts["not tried"] += 1
            return
        self._wait(1 / WRITES_PER_S)
        try:
            write()
        except ServerRefused as error:
            self._add_failure("refused", path, error)
        except LookupFailed as error:
            self._unanswered += 1
            self._add_failure("unanswered", path, error)
            return
        else:
            self._counts[what] += 1
        self._unanswered = 0

    def _add_failure(self, what: str, path: str, error: LookupFailed) -> None:
        self._counts[what] += 1
        if len(self._failures) < _MOST_NAMED:
            self._failures.append(f"{path}: {str(error).removeprefix(f'{path}: ')}")

    def _includes_finding(self, finding: Finding) -> bool:
        return not (self._fails_only and finding.result is Result.PASS)

    def _previous_reports(self) -> Iterator[JSON]:
        """Yield the reports of earlier runs about objects of the scope."""
        for kind in self._kinds.values():
            if self._scope.namespaces and not kind.resource.is_namespaced:
                continue
            for namespace in self._scope.namespaces or ("",):
                for report in objects_of_kind(
                    self._connection, kind, namespace=namespace, selector=f"{MANAGED_BY}={NAME}"
                ):
                    owners = report["metadata"].get("ownerReferences") or [{}]
                    if owners[0].get("uid") == _name_of_report(report) and self._scope.shard.has(
                        _name_of_report(report)
                    ):
                        yield {**report, "path": self._path_of_report(report)}

    def _path_of_report(self, report: JSON) -> str:
        metadata = report["metadata"]
        collection = self._kinds[report["kind"]].resource.path(metadata.get("namespace", ""))
        return f"{collection}/{quote(metadata['name'], safe='')}"


def _served_report_kind(connection: Connection, api: ReportApi, kind: str) -> ServedKind:
    group, _, version = api.version.partition("/")
    gvk = GroupVersionKind(group, version, kind)
    try:
        resource: ServedResource = Discovery(connection).find_resource(gvk)
    except LookupFailed as error:
        raise ConfigurationError(f"--publish: {kind}.{group}: {error}") from None
    return ServedKind(gvk, resource)


def _name_of_report(report: JSON) -> str:
    return str(report["metadata"]["name"])


def _path_owner_and_digest(report: JSON) -> tuple[str, tuple[str, str], str]:
    """Return the path of a report, the group and kind of its object, and the digest of the report."""
    metadata: dict[str, Any] = report["metadata"]
    owner = metadata["ownerReferences"][0]
    group_and_kind = (owner["apiVersion"].rpartition("/")[0], owner["kind"])
    return report["path"], group_and_kind, (metadata.get("annotations") or {}).get(DIGEST, "")
