"""Assembles a server and reloads its policies, its view of the cluster and its certificates while it runs."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from webhook import __version__
from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import JSON, Attributes, Phase
from webhook.apimachinery.releases import release_as_text
from webhook.cluster.freshness import NOT_ANSWERED
from webhook.cluster.watch import WatchedCluster
from webhook.deadline import Deadline
from webhook.input.reload import ReloadableValue, watch
from webhook.live_policies.combine import LivePolicies
from webhook.live_policies.exceptions import ANNOUNCE_S, EndingExceptions, StoredExceptions, exceptions_in_effect
from webhook.live_policies.live_policy_set import PARAMS_S, LiveParamsChecker, LivePolicySet
from webhook.logs.structured import Log
from webhook.manifests.leave_alone import current_day
from webhook.policy.policy_set import PolicySet
from webhook.server.access_reviews import AccessReviews
from webhook.server.application import create_application
from webhook.server.background_tasks import Supervisor, Work
from webhook.server.counters import Counters
from webhook.server.http_exchange import AsgiApp
from webhook.server.listener import Listener
from webhook.server.scheduler import Scheduler
from webhook.server.served_state import ServedState
from webhook.server.server_parts import Check, Gauges, Readiness, ServerParts
from webhook.server.tls import Certificates, ServingPair, describe_wrong_period, validity_of_certificate
from webhook.server.warning_events import WarningEvents
from webhook.settings.serving import ServerSettings

_SWITCH_S: Final = 0.000_5
"""Seconds until a thread that compiles policies gives the interpreter back to the event loop. With Python's 5 ms, each
read and write of a review would wait 5 ms.
"""
_LOOK_S: Final = 0.2
"""Seconds between two checks of readiness after the start."""
_YOUNG_OBJECTS: Final = 150_000
"""New objects before the garbage collector runs; no review on the event loop creates as many."""


def serve(
    state: ServedState,
    certificates: Certificates,
    settings: ServerSettings,
    log: Log,
    *,
    started: float,
    most_bytes: int,
    warn_of_settings: Callable[[], None],
) -> None:
    """Serve until a signal stops the process.

    Args:
        state: the policies and the view for reviews.
        certificates: the serving pair.
        settings: where to listen, and how to answer.
        log: where everything is logged.
        started: when the command began, on the performance counter.
        most_bytes: the sum of the memory bounds of all parts.
        warn_of_settings: logs settings that are allowed and probably not intended.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    counters = Counters()
    tracing = None
    if settings.traces:  # needs an extra, and 80 ms to import
        from webhook.server.tracing import tracing_to_collector

        tracing = tracing_to_collector(counters)
    events = None
    if settings.events and state.connection is not None:
        events = WarningEvents(
            state.connection, lambda rule: _title_of_rule(state.policies.current, rule), counters, log
        )
    watching = ReloadWatcher(state, certificates, counters, log)
    supervisor = Supervisor(counters, log)
    remarks = {
        **watching.remarks(),
        "background tasks": supervisor.describe_recent_failures,
        "log": log.describe_dropped_lines,
        **({"events": events.describe_error} if events else {}),
    }
    parts = ServerParts(
        settings=settings,
        log=log,
        counters=counters,
        readiness=Readiness(remarks=remarks, notes=watching.notes()),
        authority=AccessReviews(state.connection) if settings.authorizer and state.connection is not None else None,
        observer=tracing.reviewed if tracing is not None else None,
        events=events,
        view=state.cluster if state.watched else None,
        why_not_started=FirstView(watching.cluster_checks()).describe_missing,
    )
    is_ready = "1 if /readyz answers 200, 0 otherwise.", lambda: int(not parts.readiness.failing())
    endpoint, pages = create_application(
        state,
        parts,
        gauges={**watching.gauges(most_bytes), "ready": is_ready},
        about={"kubernetes": release_as_text(state.settings.kubernetes_version), "engine": state.settings.cel_engine},
        policies=lambda: state.policies.current.policies,
    )
    scheduler = parts.scheduler
    scheduler.is_warm.clear()
    parts.readiness.checks = watching.checks()
    parts.readiness.phases = {"warm-up": lambda: "" if scheduler.is_warm.is_set() else "policies are being compiled"}

    async def warm() -> None:
        # objects that exist after the warm-up are excluded from garbage collection
        await warm_up(state, scheduler)
        await pages.load()
        gc.freeze()

    start = StartLines(state, watching, parts, started, warn_of_settings)
    work = {"warm-up": warm, "start": start.wait_until_ready, **watching.background(settings.reload)}
    if events is not None:
        work["events"] = events.write_periodically
    served: AsgiApp = endpoint
    if tracing is not None:
        work["traces"] = tracing.send_periodically
        served = tracing.traced(served)
    background = tuple(supervisor.restart_after_failures(name, each) for name, each in work.items())
    Listener(
        served,
        parts,
        tls=certificates,
        probes=pages,
        background=background,
        on_start=start.write_when_listening,
    ).listen()
    log.info("stopped")
    if tracing is not None:
        tracing.flush()


def _title_of_rule(policies: PolicySet, rule: str) -> str:
    # "" if the rule is the name of a policy
    catalogues = (policy.catalogue for policy in policies.policies)
    return next((catalogue[rule].title for catalogue in catalogues if rule in catalogue), "")


class FirstView:
    """Knows whether the cluster was read once. Until then, policies would miss the objects that they look up."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        """`checks` are the checks of /readyz that read the cluster."""
        self._checks = checks
        self._is_there = False

    def describe_missing(self) -> str:
        """Return why the cluster was not read yet; "" once it was read."""
        if self._is_there:
            return ""
        reason = next((reason for check in self._checks.values() if (reason := check())), "")
        self._is_there = not reason
        return reason.partition("\n")[0]


class StartLines:
    """The log lines of a start: `listening`, or `not ready` if a check fails, and `ready` when /readyz answers 200."""

    def __init__(
        self,
        state: ServedState,
        watching: ReloadWatcher,
        parts: ServerParts,
        started: float,
        warn_of_settings: Callable[[], None],
    ) -> None:
        self._state = state
        self._warn_of_settings = warn_of_settings
        self._watching = watching
        self._readiness = parts.readiness
        self._log = parts.log
        self._started = started
        self._place: dict[str, object] = {}
        self._is_ready = False

    def write_when_listening(self, host: str, port: int, probe_port: int | None) -> None:
        """Tune the interpreter for a server, and write `not ready` or `listening`."""
        gc.freeze()  # garbage collections need not visit the policies, which live until the next reload
        gc.set_threshold(_YOUNG_OBJECTS)
        sys.setswitchinterval(_SWITCH_S)
        self._place = {"host": host, "port": port, "probe_port": probe_port}
        if reason := self._first_failure():
            self._log.warning("not ready", reason=reason, reviews=NOT_ANSWERED, **self._place)
        else:
            self._log.info("listening", **self._place)
        self._warn_of_settings()

    async def wait_until_ready(self) -> None:
        """Write the line `ready` once, when /readyz answers 200."""
        while not self._is_ready:
            await asyncio.sleep(_LOOK_S)
            self._is_ready = not self._readiness.failing()
            if self._is_ready:
                self._write_ready()

    def _first_failure(self) -> str:
        # the first cause of the first failing check; "" if policies are only being compiled
        reasons = ((name, check()) for name, check in self._readiness.checks.items())
        return next((f"{name}: {reason.partition(chr(10))[0]}" for name, reason in reasons if reason), "")

    def _write_ready(self) -> None:
        self._log.info(
            "ready",
            version=__version__,
            **self._place,
            policies=[policy.name for policy in self._state.policies.current.policies],
            certificate_ends=self._watching.certificate_end_as_text(),
            elapsed_ms=round((time.perf_counter() - self._started) * 1000),
        )


class ReloadWatcher:
    """Watches the files and the cluster of a server, and reports, logs and counts each reload."""

    def __init__(self, state: ServedState, certificates: Certificates, counters: Counters, log: Log) -> None:
        self._state = state
        self._certificates = certificates
        self._counters = counters
        self._log = log
        self._counters.last_reload.update(
            dict.fromkeys((("policies",), ("configuration",), ("context",), ("certificate",)), 1)
        )
        self._params = LiveParamsChecker(lambda: state.policies.current, state.cluster, log)
        self._ending = EndingExceptions(
            lambda: state.configuration.current,
            log,
            lambda day, last: exceptions_in_effect(state.policies.current, state.cluster(), day, last),
        )
        self._exceptions: StoredExceptions | None = None
        if isinstance(state.policies, LivePolicySet) and state.connection is not None:
            self._exceptions = StoredExceptions(lambda: state.policies.current, state.cluster, state.connection)

    def checks(self) -> dict[str, Check]:
        """Return the checks of /readyz; all must pass before reviews are answered."""
        own: dict[str, Check] = {"policies": lambda: "", "certificate": self._certificate_validity_problem}
        return own | self.cluster_checks()

    def cluster_checks(self) -> dict[str, Check]:
        """Return the checks about the state of the cluster view."""
        checks: dict[str, Check] = {}
        if self._state.watched:
            checks["cluster"] = self._state.watched.why_not_ready
        if isinstance(policies := self._state.policies, LivePolicySet):
            checks["live policies"] = policies.explain_missing_policy_list
        return checks

    def remarks(self) -> dict[str, Check]:
        """Return the remarks of /readyz?verbose, which do not make the server unready."""
        policies = self._state.policies
        return {
            "policies": lambda: policies.error,
            "configuration": lambda: self._state.configuration.error,
            "context": lambda: self._state.context.error,
            "certificate": lambda: self._certificates.error,
            "cluster": lambda: self._state.watched.describe_failures() if self._state.watched else "",
            "params": lambda: "\n".join(self._params.mistakes),
            **({"live policies": policies.describe_problems} if isinstance(policies, LivePolicySet) else {}),
            **({"exceptions": self._exceptions.describe_problems} if self._exceptions else {}),
            "unbound policies": lambda: ", ".join(policies.current.unbound_policy_names),
        }

    def notes(self) -> dict[str, Check]:
        """Return the notes of /readyz?verbose, which are not faults."""
        watched = self._state.watched
        return {"not installed": watched.cluster.describe_missing_kinds} if watched else {}

    def gauges(self, most_bytes: int) -> Gauges:
        """Return the figures for /metrics by name; `most_bytes` is the sum of all bounds."""
        return {
            "policies": ("Policies in service.", lambda: len(self._state.policies.current.policies)),
            "certificate_expiry_seconds": ("When the serving certificate ends, Unix time.", self.certificate_ends),
            "memory_bound_bytes": ("The sum of the memory bounds of all parts.", lambda: most_bytes),
            "log_lines_dropped_total": ("Dropped log lines.", lambda: self._log.dropped_line_count),
            "params_mistaken": ("Mistakes in the params of a live cluster now.", lambda: len(self._params.mistakes)),
            "live_policies": (
                "Policies and bindings that the cluster stores.",
                lambda: len(self._live_policies().objects),
            ),
            "live_policies_failing": (
                "Stored policies and bindings with errors. The condition Compiled of these objects has the errors.",
                lambda: len(self._live_policies().failing_object_names()),
            ),
            **gauges_of_view(self._state.watched),
        }

    def _live_policies(self) -> LivePolicies:
        policies = self._state.policies
        return policies.live if isinstance(policies, LivePolicySet) else LivePolicies(policies.current)

    def certificate_ends(self) -> float:
        """Return when the served certificate ends, in seconds since 1970."""
        return validity_of_certificate(self._certificates.current.shown)[1].timestamp()

    def certificate_end_as_text(self) -> str:
        """Return when the served certificate ends, in the format of log lines."""
        return f"{validity_of_certificate(self._certificates.current.shown)[1]:%Y-%m-%dT%H:%M:%SZ}"

    def _certificate_validity_problem(self) -> str:
        return describe_wrong_period(
            *validity_of_certificate(self._certificates.current.shown), dt.datetime.now(dt.UTC)
        )

    def background(self, period_s: float) -> dict[str, Work]:
        own: dict[str, Work] = {"exceptions": self._announce_exceptions}
        if self._state.watched:
            own["params"] = self._check_params
        if isinstance(policies := self._state.policies, LivePolicySet):
            own["status of live policies"] = policies.write_status
        if self._exceptions is not None:
            own["status of exceptions"] = self._exceptions.write_status
        if not period_s:
            return own
        return {
            **own,
            "policies": lambda: watch(self._state.policies, period_s, self._on_policies_reloaded),
            "configuration": lambda: watch(
                self._state.configuration,
                period_s,
                lambda tried: self._log_and_count_reload("configuration", tried.error),
            ),
            "context": lambda: watch(
                self._state.context, period_s, lambda tried: self._log_and_count_reload("context", tried.error)
            ),
            "certificate": lambda: watch(self._certificates, period_s, self._on_certificate_reloaded),
        }

    async def _check_params(self) -> None:
        while True:
            if added := await self._params.find_new_mistakes():
                self._counters.param_mistakes[()] += added
            await asyncio.sleep(PARAMS_S)

    async def _announce_exceptions(self) -> None:
        while True:
            self._counters.exception_days = await asyncio.to_thread(self._ending.announce, current_day())
            await asyncio.sleep(ANNOUNCE_S)

    def _on_policies_reloaded(self, tried: ReloadableValue[PolicySet]) -> None:
        if self._state.watched and not tried.error:
            self._state.watched.replace_interests(tried.current.interests())
        self._log_and_count_reload("policies", tried.error)

    def _on_certificate_reloaded(self, tried: ReloadableValue[ServingPair]) -> None:
        ends = {} if tried.error else {"ends": self.certificate_end_as_text()}
        self._log_and_count_reload("certificate", tried.error, **ends)

    def _log_and_count_reload(self, what: str, error: str, **fields: str) -> None:
        outcome = "failure" if error else "success"
        self._counters.reloads[what, outcome] += 1
        self._counters.last_reload[what,] = 0 if error else 1
        if error:
            self._log.error("reload failed", what=what, error=error)
        else:
            self._log.info("reloaded", what=what, **fields)


def gauges_of_view(watched: WatchedCluster | None) -> Gauges:
    """Return the figures by name; 0 without a live cluster."""
    cluster = watched.cluster if watched else None
    return {
        "cluster_view_age_seconds": (
            "Seconds since the last answer of the API server, for the oldest watch; up to 65 is healthy.",
            lambda: cluster.age_s if cluster else 0.0,
        ),
        "watch_failures": (
            "Failed lists and watches of the cluster since the start.",
            lambda: cluster.failure_count if cluster else 0,
        ),
        "cluster_view_bytes": (
            "Bytes of objects that the view of the cluster holds; --view-memory bounds them.",
            lambda: cluster.memory.bytes if cluster else 0,
        ),
        "cluster_view_dropped_total": (
            "How often the objects of a kind in a namespace were dropped because the view was full.",
            lambda: cluster.memory.dropped if cluster else 0,
        ),
        "cluster_view_unreadable_objects": (
            "Objects that the view of the cluster does not hold because they cannot be read or are too large.",
            lambda: cluster.unreadable_count if cluster else 0,
        ),
    }


_POD: Final[dict[str, Any]] = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "main",
                "image": "main",
                "command": ["sh", "-c", "torchrun train.py"],
                "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
                "resources": {"limits": {"nvidia.com/gpu": 1}},
            }
        ],
    }
}
_SELECTOR: Final = {"cel": {"expression": "device.driver.matches('a')"}}


def _sample(api_version: str, kind: str, **spec: JSON) -> Attributes:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "warm-up", "namespace": "default"}}
    return attributes_of_object({**obj, "spec": spec})


_SAMPLES: Final = (
    _sample("v1", "Pod", containers=[{"name": "main"}]),
    _sample(
        "resource.k8s.io/v1",
        "ResourceClaim",
        devices={"requests": [{"name": "a", "exactly": {"selectors": [_SELECTOR]}}]},
    ),
    _sample("batch/v1", "Job", template=_POD),
    _sample("batch.volcano.sh/v1alpha1", "Job", tasks=[{"name": "main", "replicas": 1, "template": _POD}]),
    _sample(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        replicatedJobs=[{"name": "main", "template": {"spec": {"template": _POD}}}],
    ),
    _sample(
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        runtimeRef={"name": "torch-distributed"},
        trainer={"image": "main", "command": ["sh", "-c", "torchrun train.py"], "numNodes": 2},
    ),
    _sample("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Worker": {"replicas": 1, "template": _POD}}),
)
"""Objects that are reviewed once before a server is ready. The reviews build what later reviews need: the types of
fields, tables from files, and the compiler for selectors of devices. So no review of a user waits for these parts.
"""


async def warm_up(state: ServedState, scheduler: Scheduler) -> None:
    """Compile all expressions and review an object of each common kind in both phases, in a thread.

    Meanwhile a review may run longer on the event loop, because a worker would first compile the policies itself.
    """

    def work() -> None:
        state.policies.current.compile_ahead_of_requests()
        for phase in Phase:
            for sample in _SAMPLES:
                state.review(sample, phase, Deadline())

    scheduler.is_warm.clear()
    try:
        await asyncio.to_thread(work)
    finally:
        scheduler.is_warm.set()
