"""The queues in the HTML report, with the requests of jobs, for files and for a cluster, in one process and in two."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.report.test_html import HOSTILE, Page
from webhook.cli import run_command_line
from webhook.facts.queue_overview import QueueOverview, QueueResourceAmounts, QueueRow
from webhook.report.html_queues import queue_sections
from webhook.report.queued_jobs import MOST_JOBS, Demand, QueuedJob, QueueKey, QueueTrees

EXAMPLE = Path(__file__).parents[2] / "examples" / "research-team"
KEY = QueueKey("Kueue", "team", "main")


def trees(*jobs, resource="nvidia.com/gpu", most=16):
    """Return a tree of queues: a Cohort, a ClusterQueue in it, and its LocalQueue with these jobs."""
    amounts = (QueueResourceAmounts(flavor="a100", resource=resource, nominal=8, most=most, used=3),)
    rows = (
        QueueRow(kind="Cohort", name="all", amounts=amounts),
        QueueRow(kind="ClusterQueue", name="gpus", parent="all", depth=1, amounts=amounts),
        QueueRow(kind="LocalQueue", name="main", namespace="team", parent="gpus", depth=2, amounts=amounts),
    )
    demand = Demand()
    for job in jobs:
        demand.add_job(job)
    return QueueTrees("Kueue", QueueOverview(rows), {KEY: demand} if jobs else {})


def text(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_every_parent_queue_has_the_requests_of_the_jobs_below():
    jobs = [QueuedJob("Job team/a", {"nvidia.com/gpu": 8}), QueuedJob("Job team/b", {"nvidia.com/gpu": 4})]
    told = text(queue_sections([trees(*jobs)]))
    assert told.count("2 jobs would take 12 nvidia.com/gpu") == 3
    assert told.count("Job team/a: 8 nvidia.com/gpu") == 1
    assert "8 + 8 = 16 nvidia.com/gpu (3 in use) of a100" in told


def test_demand_above_the_maximum_is_shown_in_text_and_picture():
    html = queue_sections([trees(QueuedJob("Job team/a", {"nvidia.com/gpu": 32}, "is denied"))])
    assert "1 job would take 32 nvidia.com/gpu, more than the 16 nvidia.com/gpu that the queue could have" in text(html)
    assert '<rect class="over" y="0" height="10" width="1000"/>' in html
    assert '<rect class="asked" y="0" height="10" width="500"/>' in html
    assert "Job team/a: 32 nvidia.com/gpu (is denied)" in text(html)


def test_many_jobs_are_shown_as_a_sum():
    demand, other = Demand(), Demand()
    for number in range(MOST_JOBS):
        demand.add_job(QueuedJob(f"Job team/j{number}", {"cpu": 1000}))
        other.add_job(QueuedJob(f"Job team/k{number}", {"cpu": 500}))
    demand.add(other)
    assert (demand.count, len(demand.jobs), demand.amounts) == (60, MOST_JOBS, Counter(cpu=45000))
    made = trees()
    told = text(queue_sections([QueueTrees("Kueue", made.overview, {KEY: demand})]))
    assert "60 jobs would take 45 cpu" in told
    assert "and 30 more" in told


def test_an_unknown_queue_is_reported():
    lost = {QueueKey("Kueue", "team", "mian"): Demand(1, Counter(), [QueuedJob("Job team/a", {})])}
    assert "Queue team/mian was not found. 1 job Job team/a: nothing" in text(
        queue_sections([QueueTrees("Kueue", trees().overview, lost)])
    )


def test_names_must_be_strings():
    overview = QueueOverview((QueueRow(kind="Cohort", name=HOSTILE, parent=HOSTILE, depth=1, obstacles=(HOSTILE,)),))
    demands = {QueueKey("Kueue", "", HOSTILE): Demand(1, Counter({HOSTILE: 1}), [QueuedJob(HOSTILE, {}, HOSTILE)])}
    page = Page(queue_sections([QueueTrees("Kueue", overview, demands)]))
    assert not page.named("script")
    assert not any("style" in own or any(name.startswith("on") for name in own) for _, own in page.elements)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_audit_draws_the_queues_of_its_files(tmp_path, jobs):
    file = tmp_path / "report.html"
    run_command_line(["audit", str(EXAMPLE), "--context-is-whole", "--jobs", jobs, "-o", f"html={file}"])
    told = text(file.read_text())
    assert "PyTorchJob research/finetune-large: 128 cpu, 1Ti memory, 32 nvidia.com/gpu (can never be admitted)" in told
    assert "MPIJob research/allreduce-slots: 33 cpu, 129Gi memory, 8 nvidia.com/gpu (is denied)" in told
    assert (
        "3 jobs would take 32 nvidia.com/gpu together, more than the 8 nvidia.com/gpu that the queue could have" in told
    )
    assert "Queue reserch was not found" in told
    Page(file.read_text())


def test_the_html_report_shows_queues_of_context(tmp_path):
    file = tmp_path / "report.html"
    run_command_line(["audit", str(EXAMPLE / "good"), "--context", str(EXAMPLE / "cluster"), "-o", f"html={file}"])
    told = text(file.read_text())
    assert "ClusterQueue research in science" in told
    assert "Queues of Volcano" in told


def test_a_report_without_queues_has_no_queue_section(tmp_path):
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n")
    run_command_line(["audit", str(tmp_path / "pod.yaml"), "-o", f"html={tmp_path / 'report.html'}"])
    assert "Queues of" not in (tmp_path / "report.html").read_text()
