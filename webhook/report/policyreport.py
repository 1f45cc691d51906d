"""Writes PolicyReport and ClusterPolicyReport objects of wgpolicyk8s.io/v1alpha2, or the reports of OpenReports.

OpenReports has the kinds Report and ClusterReport (openreports.io/v1alpha1, openreports/reports-api). These kinds also
name the source of all results at the top. Other fields are the same.

Follows the schema of kubernetes-sigs/wg-policy-prototypes policy-report/crd/v1alpha2. Other programs have these
conventions: one report for each namespace or object, the label managed-by, strings in properties. Without timestamps,
which are optional, the same input gives the same text. A report begins with its sums, so results are kept until the
end, in a file if there are many (spool).

A published report is about one object and has its UID as name, so each run writes the same report. Kubernetes deletes
the report with the object. Conventions: kyverno/kyverno v1.19 (pkg/utils/report), openreports/reports-api.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.report.finding import Finding, Result, Subject
from webhook.report.rule import Rules
from webhook.report.spool import Spool, SpoolFile
from webhook.report.writer import Totals
from webhook.rules.decisions import SEVERITIES
from webhook.yamltext import yamlfile

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
DIGEST: Final = "claimgate.dev/digest"
"""The annotation with a digest of the report. A later run compares the digest, and does not write an equal report."""
LEFT_OUT: Final = "claimgate.dev/results-left-out"
MOST_RESULTS: Final = 200
"""The limit of results of one report. With so many results, a report has about 200 KB; etcd accepts 1.5 MB."""


class ReportApi(Struct, frozen=True):
    """An API of reports: its version, and its kinds for namespaces and for the cluster."""

    version: str
    namespaced: str
    cluster: str
    has_source: bool = False


POLICY_REPORT: Final = ReportApi("wgpolicyk8s.io/v1alpha2", "PolicyReport", "ClusterPolicyReport")
OPEN_REPORTS: Final = ReportApi("openreports.io/v1alpha1", "Report", "ClusterReport", has_source=True)
API_VERSION: Final = POLICY_REPORT.version
NAME: Final = "claimgate"
_BATCH: Final = 20
"""The most results of a namespace in memory. A cluster may have thousands of namespaces."""


class PolicyReportWriter:
    """Writes one YAML stream for `kubectl apply -f`. Without findings, the stream is empty.

    The PolicyReports are sorted by namespace. The ClusterPolicyReport about cluster-scoped objects is last.
    """

    def __init__(self, api: ReportApi = POLICY_REPORT) -> None:
        self._api = api
        self._file = SpoolFile()
        self._results: dict[str, Spool[JSON]] = {}
        self._counts: dict[str, Counter[Result]] = {}

    def begin(self, _rules: Rules) -> Iterator[str]:
        yield from ()

    def entry(self, entry: Finding) -> Iterator[str]:
        namespace = entry.subject.namespace
        if namespace not in self._results:
            self._results[namespace] = Spool(self._file, _BATCH)
            self._counts[namespace] = Counter()
        self._results[namespace].append(result_of_finding(entry))
        self._counts[namespace][entry.result] += 1
        yield from ()

    def end(self, _totals: Totals) -> Iterator[str]:
        ordered = sorted(self._results, key=lambda name: (not name, name))
        for number, namespace in enumerate(ordered):
            head = _report_without_results(namespace, self._counts[namespace], self._api)
            yield "---\n" if number else ""
            yield f"{yamlfile.dump(head)}results:\n"
            yield from (yamlfile.dump([result]) for result in self._results[namespace])


class OpenReportsWriter(PolicyReportWriter):
    """Writes the reports of OpenReports."""

    def __init__(self) -> None:
        super().__init__(OPEN_REPORTS)


def _report_without_results(namespace: str, counts: Counter[Result], api: ReportApi) -> JSON:
    metadata: dict[str, Any] = {"name": NAME, "labels": {"app.kubernetes.io/managed-by": NAME}}
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": api.version,
        "kind": api.namespaced if namespace else api.cluster,
        "metadata": metadata,
        **({"source": NAME} if api.has_source else {}),
        "summary": {str(result): counts[result] for result in Result},
    }


def result_of_finding(finding: Finding) -> dict[str, Any]:
    """Return a finding as a result of a report."""
    decision, severity = finding.decision, finding.rule.severity or finding.decision.severity
    optional = {
        "rule": _rule_of_finding(finding),
        "category": decision.category,
        "severity": severity if severity in SEVERITIES else "",  # the only severities of the schema
        "message": finding.message,
    }
    return {
        "source": NAME,
        "policy": decision.policy,
        **{key: value for key, value in optional.items() if value},
        "result": str(finding.result),
        "scored": finding.result is not Result.WARN,
        "resources": [_object_reference(finding)],
        "properties": _properties_of_finding(finding),
    }


def _rule_of_finding(finding: Finding) -> str:
    """Return the id of the rule, or a part of the policy such as `validations[0]`; "" for a pass, and for a finding
    about no part of the policy.
    """
    if "/" in finding.rule.id and finding.result is not Result.PASS:
        return finding.rule.id
    index = finding.decision.index
    if index is None or finding.result is Result.PASS:
        return ""
    return f"{'mutations' if finding.decision.kind == 'mutating' else 'validations'}[{index}]"


def _object_reference(finding: Finding) -> dict[str, str]:
    subject = finding.subject
    reference = {
        "apiVersion": subject.api_version,
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
        "fieldPath": "" if finding.result is Result.PASS else finding.path,
    }
    return {key: value for key, value in reference.items() if value}


def _properties_of_finding(finding: Finding) -> dict[str, str]:
    """Return the data without a field in the schema, as properties. All values are strings."""
    properties = {
        "binding": finding.decision.binding,
        "param": finding.decision.param,
        "reason": finding.decision.reason,
        "phase": str(finding.phase),
        "file": finding.place.file,
        "line": str(finding.place.line or ""),
    }
    return {key: value for key, value in properties.items() if value}


def object_report(findings: Sequence[Finding], api: ReportApi) -> JSON:
    """Return the report of one object, which has at least one finding."""
    subject, counts = findings[0].subject, Counter(finding.result for finding in findings)
    worst_first = sorted(findings, key=lambda each: _ORDER.index(each.result))
    content: dict[str, Any] = {
        **({"source": NAME} if api.has_source else {}),
        "scope": _scope_of_report(subject),
        "summary": {str(result): counts[result] for result in Result},
        "results": [_result_without_object(result_of_finding(each)) for each in worst_first[:MOST_RESULTS]],
    }
    annotations = {DIGEST: _digest_of_content(content)}
    if worst_first[MOST_RESULTS:]:
        annotations[LEFT_OUT] = str(len(worst_first) - MOST_RESULTS)
    metadata: dict[str, Any] = {
        "name": subject.uid,
        **({"namespace": subject.namespace} if subject.namespace else {}),
        "labels": {MANAGED_BY: NAME},
        "annotations": annotations,
        "ownerReferences": [_owner_reference(subject)],
    }
    kind = api.namespaced if subject.namespace else api.cluster
    return {"apiVersion": api.version, "kind": kind, "metadata": metadata, **content}


_ORDER: Final = (Result.FAIL, Result.ERROR, Result.WARN, Result.SKIP, Result.PASS)


def _owner_reference(subject: Subject) -> dict[str, str]:
    return {"apiVersion": subject.api_version, "kind": subject.kind, "name": subject.name, "uid": subject.uid}


def _scope_of_report(subject: Subject) -> dict[str, str]:
    return {**_owner_reference(subject), **({"namespace": subject.namespace} if subject.namespace else {})}


def _result_without_object(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result for the report of one object: without the object, and with the field path in the properties."""
    at = result["resources"][0].get("fieldPath", "")
    properties = {key: value for key, value in result["properties"].items() if key not in ("file", "line")}
    properties |= {"field": at} if at else {}
    return {**{key: value for key, value in result.items() if key != "resources"}, "properties": properties}


def _digest_of_content(content: JSON) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
