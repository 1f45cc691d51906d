"""The findings about 1,155 TrainJobs, compared with the results of the real Trainer, JobSet and API server."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.facts.trainer.observed import RUNS, cluster, normal, policies, predicted, rows, said, spoken
from tests.rows import all_rows
from webhook.admission.decode import decode_review
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase

ROWS = rows("observed")
NAMED_LATER = {"t1406"}
"""The name of the job is generated, so addresses are not known."""


def test_every_job_set_is_predicted() -> None:
    wrong = []
    for row in ROWS:
        made = row["observed"].get("jobset")
        if made is not None:
            job = predicted(row["trainjob"])
            ours = normal(job.merged.spec, suspend=job.spec.suspend)
            if ours != normal(made["spec"]):
                wrong.append(row["id"])
    assert {*wrong} - NAMED_LATER == set()


def test_findings_match_the_observed_outcome() -> None:
    """No job that ran is denied, and every job that did not run has a finding."""
    told = Counter((row["observed"]["stage"] in RUNS, said(row["trainjob"])) for row in ROWS)
    assert told[True, "deny"] <= FALSE_DENIALS
    assert told[False, "none"] <= SILENT


@all_rows("row", rows("updates"), ids=lambda row: row["case"])
def test_an_update_gets_its_consequence_as_a_finding(row: dict[str, Any]) -> None:
    """Each update has one of three results: Trainer refuses it, Trainer accepts it and JobSet refuses it again and
    again, or both accept it.
    """
    seen = row["observed"]
    verdict = answer_request(decode_review(row["review"]), policies(), cluster(), phase=Phase.VALIDATE)
    assert spoken(verdict) == ("deny" if not seen["allowed"] else "warn" if seen["jobsetRefused"] else "none")


FALSE_DENIALS = 0
SILENT = 0
