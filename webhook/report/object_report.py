"""Builds a report of the findings of one object, which Kubernetes deletes together with the object.

Its name is the UID of the object, so that each run writes the same report. Conventions: kyverno/kyverno v1.19
(pkg/utils/report, one report a resource, owned by it), openreports/reports-api.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from webhook.apimachinery.attributes import JSON
from webhook.report.finding import Finding, Result, Subject
from webhook.report.policyreport import NAME, ReportApi, result_of_finding

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
DIGEST: Final = "claimgate.dev/digest"
"""The annotation with a digest, by which a run knows that a report is up to date."""
LEFT_OUT: Final = "claimgate.dev/results-left-out"
MOST_RESULTS: Final = 200
"""How many results one report has at most, which then has some 200 KB: an API server accepts 1.5 MB."""


def object_report(findings: Sequence[Finding], api: ReportApi) -> JSON:
    """Return the report of one object from its findings, at least one."""
    about, counts = findings[0].subject, Counter(finding.result for finding in findings)
    worst_first = sorted(findings, key=lambda each: _ORDER.index(each.result))
    content: dict[str, Any] = {
        **({"source": NAME} if api.has_source else {}),
        "scope": _object_reference(about),
        "summary": {str(result): counts[result] for result in Result},
        "results": [_result_without_object(result_of_finding(each)) for each in worst_first[:MOST_RESULTS]],
    }
    annotations = {DIGEST: _digest_of_content(content)}
    if worst_first[MOST_RESULTS:]:
        annotations[LEFT_OUT] = str(len(worst_first) - MOST_RESULTS)
    metadata: dict[str, Any] = {
        "name": about.uid,
        **({"namespace": about.namespace} if about.namespace else {}),
        "labels": {MANAGED_BY: NAME},
        "annotations": annotations,
        "ownerReferences": [_owner_reference(about)],
    }
    kind = api.namespaced if about.namespace else api.cluster
    return {"apiVersion": api.version, "kind": kind, "metadata": metadata, **content}


_ORDER: Final = (Result.FAIL, Result.ERROR, Result.WARN, Result.SKIP, Result.PASS)


def _owner_reference(about: Subject) -> dict[str, str]:
    return {"apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid}


def _object_reference(about: Subject) -> dict[str, str]:
    return {**_owner_reference(about), **({"namespace": about.namespace} if about.namespace else {})}


def _result_without_object(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without the object, which its report names; the field path is in the properties."""
    at = result["resources"][0].get("fieldPath", "")
    properties = {key: value for key, value in result["properties"].items() if key not in ("file", "line")}
    properties |= {"field": at} if at else {}
    return {**{key: value for key, value in result.items() if key != "resources"}, "properties": properties}


def _digest_of_content(content: JSON) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
