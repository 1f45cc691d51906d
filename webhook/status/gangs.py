"""Reads the statuses of gang schedulers: PodGroups of Volcano, KAI and the coscheduling plugin, and jobs of Volcano.

Source: volcano-sh/volcano@ed72c7c8 staging apis/pkg/apis/scheduling/v1beta1/types.go and pkg/scheduler/plugins/gang;
kai-scheduler/KAI-Scheduler@d5bc503a pkg/apis/scheduling/v2alpha2;
kubernetes-sigs/scheduler-plugins apis/scheduling/v1alpha1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.status.owned_objects import VOLCANO_GROUP
from webhook.status.refusals import gang_reason
from webhook.status.sources import ClusterReading, event_words
from webhook.status.statement import (
    Standing,
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
_UNSCHEDULABLE: Final = "Unschedulable"
"""The reason of events about a gang that cannot start. The event has type Normal, not Warning, if a
plugin keeps a gang out of a queue."""
_SCARCE: Final = re.compile(r"(?:insufficient|overused) ([A-Za-z0-9./-]{1,253})")
_NOT_ENQUEUED: Final = (
    (
        "queue resource quota insufficient",
        "Volcano's queue {queue} has too little free {scarce} for the gang now",
        "wait until other jobs of the queue end, or ask for less",
    ),
    (
        "resource quota insufficient",
        "a ResourceQuota of the namespace has no room for the gang",
        "ask for less, end other jobs of the namespace, or ask the administrator to raise the quota",
    ),
    (
        "overused",
        "the cluster has too little free {scarce} for the gang, so Volcano does not let it into queue {queue}",
        "wait until other jobs end or nodes are added, or ask for less",
    ),
)
"""Parts of messages of plugins that keep a gang out of its queue, each with its meaning and the fix."""
_NUMBER: Final = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_OVER_QUOTA: Final = re.compile(rf"requested {_NUMBER} [^,]{{1,20}}, but .{{1,253}} quota is {_NUMBER} ")
_OVER_LIMIT: Final = re.compile(rf"Limit is {_NUMBER} [^,]{{1,20}}, currently .{{1,60}} requested {_NUMBER} ")


def read_volcano_group(group: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield why Volcano does not start a gang."""
    phase = text_at(group, ("status", "phase"))
    if phase in ("Running", "Completed"):
        return
    name = text_at(group, ("spec", "queue")) or "default"
    queue = reading.get(_QUEUE, "", name)
    state = text_at(queue, ("status", "state"))
    group_name = name_of(group)
    if state in _CLOSED:
        sentence = f"Volcano's queue {name} is {state.lower()} and starts nothing"
        fix = "use another queue, or ask the administrator to open it"
        yield Statement(
            about=group_name,
            standing="stuck",
            turn=Turn.GANG,
            sentence=sentence,
            fix=fix,
            words=f"status.state of Queue {name} is {state}",
        )
        return
    unschedulable = true_condition(conditions_of(group), "Unschedulable")
    events = [each for each in reading.events(group, _UNSCHEDULABLE) if text_at(each, ("reason",)) == _UNSCHEDULABLE]
    message = unschedulable.message if unschedulable else text_at(next(iter(events), None), ("message",))
    words = unschedulable.words if unschedulable else next(map(event_words, events), "")
    min_member = number_at(group, ("spec", "minMember"))
    refusal = next((each for each in _NOT_ENQUEUED if each[0] in message), None)
    if refusal is not None:
        _, sentence, fix = refusal
        scarce = " and ".join(dict.fromkeys(_SCARCE.findall(message))) or "room"
        sentence = sentence.format(scarce=scarce, queue=name)
        yield Statement(about=group_name, standing="waits", turn=Turn.GANG, sentence=sentence, fix=fix, words=words)
    elif message:
        reason = gang_reason(message)
        sentence = (
            f"Volcano cannot start {counted(min_member, 'pod')} of the gang together{f': {reason}' if reason else ''}"
        )
        fix = "wait until nodes have room for all of them, or lower minAvailable of the job"
        yield Statement(about=group_name, standing="waits", turn=Turn.GANG, sentence=sentence, fix=fix, words=words)
    elif phase == "Pending":
        sentence = f"Volcano has not let the gang into queue {name} yet"
        fix = "wait, or check whether the cluster has room for its minResources, and whether Volcano's scheduler runs"
        yield Statement(
            about=group_name,
            standing="waits",
            turn=Turn.GANG,
            sentence=sentence,
            fix=fix,
            words="status.phase is Pending",
        )


def read_plugin_group(group: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield why the coscheduling plugin delays a gang."""
    phase, min_member = text_at(group, ("status", "phase")), number_at(group, ("spec", "minMember"))
    if phase in ("Pending", "PreScheduling", "Scheduling", ""):
        event = next(iter(reading.events(group)), None)
        sentence = f"the coscheduling plugin waits until {counted(min_member, 'pod')} of the gang can start together"
        fix = "look at its pods, and compare their number with minMember"
        words = event_words(event) if event else f"status.phase is {phase or 'not set'}"
        yield Statement(
            about=name_of(group), standing="waits", turn=Turn.SILENCE, sentence=sentence, fix=fix, words=words
        )


def read_kai_group(group: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield why KAI does not start a gang."""
    del reading
    queue = text_at(group, ("spec", "queue"))
    for each in items_at(group, ("status", "schedulingConditions")):
        reasons = [text_at(explained, ("reason",)) for explained in items_at(each, ("reasons",))]
        message = text_at(each, ("message",)).strip()
        standing, sentence, fix = _why_kai_waits(reasons, message, queue)
        words = ": ".join(filter(None, (", ".join(reasons) or text_at(each, ("reason",)), message)))
        yield Statement(
            about=name_of(group), standing=standing, turn=Turn.GANG, sentence=sentence, fix=fix, words=words
        )
        return


def _why_kai_waits(reasons: Sequence[str], message: str, queue: str) -> tuple[Standing, str, str]:
    """Return the standing, the sentence and the fix from KAI's reasons and message."""
    if "QueueDoesNotExist" in reasons:
        fix = "name a queue that exists in the label kai.scheduler/queue, or create it with its parent"
        return "stuck", f"queue {queue} of KAI does not exist", fix
    if "NonPreemptibleOverQuota" in reasons:
        exceeded = _OVER_QUOTA.search(message)
        is_never = exceeded is not None and float(exceeded[1]) > float(exceeded[2])
        sentence = f"KAI runs the gang as non-preemptible, and queue {queue} has too little quota"
        fix = "raise the quota of the queue, or label the pod template kai.scheduler/preemptibility: preemptible"
        return "stuck" if is_never else "waits", f"{sentence}{f': {message}' if message else ''}", fix
    if "OverLimit" in reasons:
        exceeded = _OVER_LIMIT.search(message)
        is_never = exceeded is not None and float(exceeded[2]) > float(exceeded[1])
        sentence = f"KAI does not start the gang, because queue {queue} would be over its limit"
        fix = "ask for less, wait until other jobs of the queue end, or ask the administrator to raise the limit"
        return "stuck" if is_never else "waits", f"{sentence}{f': {message}' if message else ''}", fix
    sentence = f"KAI does not start the gang in queue {queue}{f': {message}' if message else ''}"
    return "waits", sentence, "wait until nodes have room, or ask for less"


def read_volcano_job(job: JSON, reading: ClusterReading) -> Iterator[Statement]:
    """Yield the statements about a Job of Volcano."""
    phase = text_at(job, ("status", "state", "phase"))
    message = ": ".join(
        filter(None, (text_at(job, ("status", "state", each)).strip() for each in ("reason", "message")))
    )
    job_name = name_of(job)
    if phase == "Completed":
        yield Statement(about=job_name, standing="done", turn=Turn.ENDED, sentence="it is complete")
    elif phase in ("Failed", "Terminated", "Aborted"):
        sentence = {
            "Failed": "the job failed",
            "Terminated": "the job was terminated",
            "Aborted": "the job was aborted, by a command or by a policy of the job",
        }[phase]
        fix = "resume it with a Command ResumeJob" if phase == "Aborted" else "look at its pods, then create it again"
        yield Statement(
            about=job_name,
            standing="failed",
            turn=Turn.ENDED,
            sentence=sentence,
            fix=fix,
            words=message or f"status.state.phase is {phase}",
        )
    elif phase in ("", "Pending") and not _has_group(job, reading):
        sentence = "Volcano has made no PodGroup of the job"
        yield Statement(
            about=job_name,
            standing="waits",
            turn=Turn.SILENCE,
            sentence=sentence,
            fix="check whether Volcano's controller runs",
            words=message,
        )


def _has_group(job: JSON, reading: ClusterReading) -> bool:
    name = name_of(job)
    return any(
        text_at(reference, ("name",)) == name.name
        for group in reading.list(VOLCANO_GROUP, name.namespace)
        for reference in items_at(group, ("metadata", "ownerReferences"))
    )
