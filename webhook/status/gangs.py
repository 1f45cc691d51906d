"""Statements of schedulers of gangs: PodGroups of Volcano, of KAI and of the coscheduling plugin, and jobs of Volcano.

Source: volcano-sh/volcano@ed72c7c8 staging apis/pkg/apis/scheduling/v1beta1/types.go and pkg/scheduler/plugins/gang;
kai-scheduler/KAI-Scheduler@d5bc503a pkg/apis/scheduling/v2alpha2;
kubernetes-sigs/scheduler-plugins apis/scheduling/v1alpha1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.status.owned_objects import VOLCANO_GROUP
from webhook.status.scheduling import gang_reason
from webhook.status.sources import ClusterReading, event_words
from webhook.status.statement import (
    Statement,
    Turn,
    conditions_of,
    items_at,
    name_of,
    number_at,
    text_at,
    true_condition,
)
from webhook.text.wording import counted

_QUEUE: Final = GroupVersionKind("scheduling.volcano.sh", "v1beta1", "Queue")
_CLOSED: Final = ("Closed", "Closing")


def read_volcano_group(group: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield why Volcano does not start a gang."""
    phase = text_at(group, ("status", "phase"))
    if phase in ("Running", "Completed"):
        return
    name = text_at(group, ("spec", "queue")) or "default"
    queue = reading.get(_QUEUE, "", name)
    state = text_at(queue, ("status", "state"))
    about = name_of(group)
    if state in _CLOSED:
        says = f"Volcano's queue {name} is {state.lower()} and starts nothing"
        fix = "use another queue, or ask the administrator to open it"
        yield Statement(
            about=about,
            standing="stuck",
            turn=Turn.GANG,
            says=says,
            fix=fix,
            words=f"status.state of Queue {name} is {state}",
        )
        return
    unschedulable = true_condition(conditions_of(group), "Unschedulable")
    events = [each for each in reading.events(group) if text_at(each, ("reason",)) == "Unschedulable"]
    message = unschedulable.message if unschedulable else text_at(next(iter(events), None), ("message",))
    words = unschedulable.words if unschedulable else next(map(event_words, events), "")
    least = number_at(group, ("spec", "minMember"))
    if "quota insufficient" in message or "overused" in message:
        says, fix = (
            f"Volcano's queue {name} has no room for it now",
            "wait until other jobs of the queue end, or ask for less",
        )
        yield Statement(about=about, standing="waits", turn=Turn.GANG, says=says, fix=fix, words=words)
    elif message:
        why = gang_reason(message)
        says = f"Volcano cannot start {counted(least, 'pod')} of the gang together{f': {why}' if why else ''}"
        fix = "wait until nodes have room for all of them, or lower minAvailable of the job"
        yield Statement(about=about, standing="waits", turn=Turn.GANG, says=says, fix=fix, words=words)
    elif phase == "Pending":
        says = f"Volcano has not let it into queue {name} yet"
        fix = "wait, or look whether the cluster has room for its minResources and whether Volcano's scheduler runs"
        yield Statement(
            about=about, standing="waits", turn=Turn.GANG, says=says, fix=fix, words="status.phase is Pending"
        )


def read_plugin_group(group: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield why the coscheduling plugin holds a gang back."""
    phase, least = text_at(group, ("status", "phase")), number_at(group, ("spec", "minMember"))
    if phase in ("Pending", "PreScheduling", "Scheduling", ""):
        event = next(iter(reading.events(group)), None)
        says = f"the coscheduling plugin waits until {counted(least, 'pod')} of the gang can start together"
        fix = "look at its pods, and compare their number with minMember"
        words = event_words(event) if event else f"status.phase is {phase or 'not set'}"
        yield Statement(about=name_of(group), standing="waits", turn=Turn.SILENCE, says=says, fix=fix, words=words)


def read_kai_group(group: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield why KAI does not start a gang."""
    del reading
    for each in items_at(group, ("status", "schedulingConditions")):
        reason, message = text_at(each, ("reason",)), text_at(each, ("message",)).strip()
        says = f"KAI does not start it in queue {text_at(group, ('spec', 'queue'))}{f': {message}' if message else ''}"
        fix = "look at the limit and the quota of the queue and of those above it, or make the workload preemptible"
        yield Statement(about=name_of(group), standing="waits", turn=Turn.GANG, says=says, fix=fix, words=reason)
        return


def read_volcano_job(job: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield what Volcano says of a job of its own."""
    phase = text_at(job, ("status", "state", "phase"))
    message = ": ".join(
        filter(None, (text_at(job, ("status", "state", each)).strip() for each in ("reason", "message")))
    )
    about = name_of(job)
    if phase == "Completed":
        yield Statement(about=about, standing="done", turn=Turn.ENDED, says="it is complete")
    elif phase in ("Failed", "Terminated", "Aborted"):
        says = {
            "Failed": "the job failed",
            "Terminated": "the job was terminated",
            "Aborted": "the job was aborted, by a command or by a policy of the job",
        }[phase]
        fix = "resume it with a Command ResumeJob" if phase == "Aborted" else "look at its pods, then create it again"
        yield Statement(
            about=about,
            standing="failed",
            turn=Turn.ENDED,
            says=says,
            fix=fix,
            words=message or f"status.state.phase is {phase}",
        )
    elif phase in ("", "Pending") and not _has_group(job, reading):
        says = "Volcano has made no PodGroup of the job"
        yield Statement(
            about=about,
            standing="waits",
            turn=Turn.SILENCE,
            says=says,
            fix="look whether Volcano's controller runs",
            words=message,
        )


def _has_group(job: JSON, reading: ClusterReading) -> bool:
    name = name_of(job)
    return any(
        text_at(reference, ("name",)) == name.name
        for group in reading.list(VOLCANO_GROUP, name.namespace)
        for reference in items_at(group, ("metadata", "ownerReferences"))
    )
