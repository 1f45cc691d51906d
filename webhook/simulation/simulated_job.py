"""Runs one job through both phases of admission as if it were created now, and returns the outcome."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from msgspec import Struct

from webhook.admission.exceptions import is_ignored_by_configuration
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery.attributes import Attributes
from webhook.assembly import ReviewAssembly
from webhook.cluster.recording import RecordingCluster
from webhook.report.finding import findings_of_object, subject_of_request
from webhook.report.rule import RulesOfPolicies
from webhook.report.writer import left_out_by_configuration
from webhook.simulation.asked import read_job_request, subject_of_job
from webhook.simulation.open_questions import open_questions
from webhook.simulation.outcome import Moments, Simulation, simulation
from webhook.yamltext.source_line import Locate, Place


class ObjectPlace(Struct, frozen=True):
    """The place of a job, and of each of its fields."""

    place: Place
    locate: Locate


def simulate_job(
    attributes: Attributes, located: ObjectPlace, cluster: RecordingCluster, assembled: ReviewAssembly, when: Moments
) -> Simulation:
    """Run one job through both phases, and return the result.

    Args:
        attributes: of the request that creates it.
        located: its place.
        cluster: the other objects of the cluster.
        assembled: the policies and the workload table.
        when: the moments at which objects that break rules go wrong.
    """
    admin = replace(assembled.options, sees_all_namespaces=True)
    door = LocalAnswerer(policies=assembled.policies, cluster=cluster, options=admin)
    outcome = run_phases(attributes, "auto", door)
    about = subject_of_request(attributes)
    told = tuple(
        findings_of_object(
            (*outcome.decisions, *outcome.further), about, located.locate, RulesOfPolicies(assembled.policies)
        )
    )
    made = outcome.patched_object if outcome.verdict.allowed else attributes.object
    subject = subject_of_job(attributes, made, cluster, assembled.policies)
    made_simulation = simulation(
        told,
        when,
        about=about,
        place=located.place,
        operation=attributes.operation,
        asked=read_job_request(subject),
        questions=open_questions(subject, cluster, {each.rule.id for each in told}),
        looked_at=cluster,
    )
    configuration = assembled.policies.configuration
    excepted = tuple(each for each in told if each.exception_reason)
    left_out = left_out_by_configuration(
        configuration,
        Counter(each.exception_reason for each in excepted),
        objects=int(is_ignored_by_configuration(attributes, configuration, cluster)),
    )
    return replace(made_simulation, left_out=left_out, excepted=excepted)
