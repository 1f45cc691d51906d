"""Assembles a server and reloads its policies, its view of the cluster and its certificates while it runs.

Puts the server together; knows neither flags nor HTTP. Everything a review needs is read anew for each one, so that a
reload is one assignment.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from webhook import assembly
from webhook.admission.interrupt import answer_unevaluated_request
from webhook.admission.review import answer_request
from webhook.attributes import Attributes, Phase
from webhook.cel.library.authorizer import Authorizer
from webhook.cluster import Cluster, live
from webhook.cluster.assumed_namespaces import ClusterWithAssumedNamespaces
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import LayeredCluster
from webhook.deadline import Deadline
from webhook.decisions import Verdict
from webhook.errors import ConfigurationError
from webhook.evaluation.review_options import ReviewOptions
from webhook.live_policies.combine import LivePolicies
from webhook.live_policies.compile import Compiler
from webhook.live_policies.objects import watch_stored_policies as watch_stored
from webhook.logs import Log
from webhook.policy.policy_set import PolicySet
from webhook.releases import release_as_text
from webhook.server.access_reviews import check_authorizer_enabled
from webhook.server.application import create_application
from webhook.server.background_tasks import Supervisor, Work
from webhook.server.counters import Counters
from webhook.server.listener import Listener, ListenerSettings
from webhook.server.live_params import LiveParamsChecker
from webhook.server.live_policy_set import LivePolicySet
from webhook.server.metrics import Gauges
from webhook.server.policy_list import policy_rows
from webhook.server.readiness import Check, Readiness
from webhook.server.reload import ReloadableValue, create_file_state_function, watch
from webhook.server.review_endpoint import AsgiApp, Limits
from webhook.server.review_parts import AuthorizationSource
from webhook.server.scheduler import Scheduler
from webhook.server.tls import Certificates, validity_of_certificate
from webhook.server.view_gauges import gauges_of_view
from webhook.server.warm_up_samples import SAMPLES
from webhook.server.worker_lane import WorkerLimits
from webhook.settings.configured import settings_from_changed_file
from webhook.settings.reporting import ReportSettings
from webhook.yamlfile import discover

_SWITCH_S: Final = 0.000_5
"""Seconds until a thread that compiles policies gives the interpreter back to the loop: with Python's own 5 ms each
read and write of each review would wait that long.
"""
_YOUNG_OBJECTS: Final = 150_000
"""How many new objects there are before the garbage collector runs. No review creates as many in its time on the loop.
"""


@dataclass(frozen=True, slots=True)
class ServedState:
    """The policies, context and view of the cluster that reviews are evaluated with; each review reads them anew."""

    policies: ReloadableValue[PolicySet]
    context: ReloadableValue[FilesCluster]
    watched: live.WatchedCluster | None
    settings: ReportSettings

    @classmethod
    def make(
        cls,
        chosen: ReportSettings,
        is_live: bool,
        kubeconfig: Path | None,
        log: Log,
        *,
        may_ask: bool = False,
        live_policies: bool = False,
        view_memory: int | None = None,
    ) -> ServedState:
        """Load policies and context for the first time, and start to watch the cluster.

        Args:
            chosen: policies, context and how they are read.
            is_live: whether there is a cluster to watch.
            kubeconfig: of that cluster; None for the one that the server runs in.
            log: where failures of watches go.
            may_ask: whether policies may ask `authorizer`.
            live_policies: whether the policies that the cluster stores are evaluated, too.
            view_memory: bytes of objects in namespaces that the view holds; None is no bound.

        Raises:
            ConfigurationError: policies, context or cluster that cannot be used.
            InputError: context that cannot be read.
        """
        places = (*assembly.policy_folders_of_settings(chosen), *filter(None, [chosen.configuration.path]))
        how = assembly.create_compile_options(chosen)
        policies: ReloadableValue[PolicySet] = ReloadableValue(
            lambda: check_authorizer_enabled(
                assembly.load_policies_of_settings(settings_from_changed_file(chosen), how), may_ask=may_ask
            ),
            create_file_state_function(lambda: discover(places)),
            PolicySet.compile_ahead_of_requests,
        )
        if live_policies:
            policies = LivePolicySet(policies, *watch_stored(kubeconfig, log), Compiler(how, may_ask=may_ask))
        context = ReloadableValue(
            lambda: assembly.cluster_of_context_files(chosen, policies.current),
            create_file_state_function(lambda: discover(chosen.context)),
        )
        interests = policies.current.interests()
        watched = live.WatchedCluster.start(kubeconfig, interests, log, view_memory) if is_live else None
        return cls(policies, context, watched, chosen)

    def cluster(self) -> Cluster:
        """Return the view of the cluster: objects of context files first, then those of the live cluster."""
        context = self.context.current
        return LayeredCluster(context, self.watched.cluster) if self.watched else ClusterWithAssumedNamespaces(context)

    @property
    def view_bytes(self) -> int:
        """Return the bytes of objects in namespaces that the view of the cluster holds now."""
        return self.watched.cluster.memory.bytes if self.watched else 0

    def review(
        self, attributes: Attributes, phase: Phase, deadline: Deadline, authorizer: Authorizer | None = None
    ) -> Verdict:
        """Evaluate one review with the current policies and view."""
        return answer_request(
            attributes,
            self.policies.current,
            self.cluster(),
            phase=phase,
            deadline=deadline,
            authorizer=authorizer,
            api_server_text=self.settings.api_server_text,
            options=ReviewOptions(
                enforcement_action=self.settings.enforcement_action, docs_address=self.settings.docs_address
            ),
        )

    def answer_unevaluated(self, attributes: Attributes, phase: Phase, because: str) -> Verdict:
        """Return the verdict on a request whose evaluation was given up."""
        most = self.settings.enforcement_action
        return answer_unevaluated_request(
            attributes, self.policies.current, self.cluster(), phase=phase, because=because, most=most
        )


def serve(
    held: ServedState,
    certificates: Certificates,
    place: ListenerSettings,
    limits: Limits,
    *,
    log: Log,
    reload_s: float,
    started: float,
    workers: WorkerLimits = WorkerLimits(),  # noqa: B008 - frozen
    authority: AuthorizationSource | None = None,
    most_bytes: int = 0,
    logs_denials: bool = False,
    traces: bool = False,
    before: Callable[[AsgiApp], AsgiApp] = lambda endpoint: endpoint,
) -> None:
    """Assemble the process and listen until a signal stops it.

    Args:
        held: what reviews are answered with.
        certificates: the serving pair.
        place: where to listen.
        limits: of one call.
        log: where everything is logged.
        reload_s: how often to look for changed files; 0 is never.
        started: when the command began, on the performance counter.
        workers: how many processes evaluate what takes long, and what each may take.
        authority: answers what policies ask of `authorizer`.
        most_bytes: of memory, what all bounds add up to.
        logs_denials: whether the log line of a refused review has the message.
        traces: whether a span of each review is sent to the collector of OTEL_EXPORTER_OTLP_ENDPOINT.
        before: wraps the served application; the benchmark puts a route that does nothing in front.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    counters = Counters()
    tracing = None
    if traces:  # of an extra, and 80 ms to import
        from webhook.server.tracing import tracing_to_collector

        tracing = tracing_to_collector(counters)
    watching = ReloadWatcher(held, certificates, counters, log)
    supervisor = Supervisor(counters, log)
    remarks = {
        **watching.remarks(),
        "background tasks": supervisor.describe_recent_failures,
        "log": log.describe_dropped_lines,
    }
    readiness = Readiness(remarks=remarks)
    application = create_application(
        held,
        log,
        limits,
        counters=counters,
        readiness=readiness,
        gauges=watching.gauges(most_bytes),
        about={"kubernetes": release_as_text(held.settings.kubernetes_version), "engine": held.settings.cel_engine},
        workers=workers,
        authority=authority,
        policies=lambda: policy_rows(held.policies.current),
        logs_denials=logs_denials,
        observer=tracing,
    )
    scheduler = application.scheduler
    scheduler.is_warm.clear()
    readiness.checks = {**watching.checks(), "warm-up": lambda: "" if scheduler.is_warm.is_set() else "it is not done"}

    async def warm() -> None:
        """Load the pages and warm up the policies, then exclude what was created from garbage collection."""
        await asyncio.gather(application.pages.load(), warm_up(held, scheduler))
        gc.freeze()
        log.info("warm", elapsed_ms=round((time.perf_counter() - started) * 1000))

    work = {"warm-up": warm, **watching.background(reload_s)}
    endpoint = before(application.endpoint)
    if tracing is not None:
        work["traces"] = tracing.send_periodically
        endpoint = tracing.traced(endpoint)
    background = tuple(supervisor.restart_after_failures(name, each) for name, each in work.items())
    Listener(
        endpoint,
        place,
        readiness,
        scheduler,
        probes=application.pages,
        log=log,
        counters=counters,
        background=background,
        on_start=_create_start_callback(held, log, started),
    ).listen()
    if tracing is not None:
        tracing.flush()


def _create_start_callback(held: ServedState, log: Log, started: float) -> Callable[[str, int, int | None], None]:
    """Return what is done when the server listens: it tunes the interpreter and writes the line `ready`."""

    def ready(host: str, port: int, probe_port: int | None) -> None:
        gc.collect()
        gc.freeze()  # policies live until the next reload: no collection walks them again
        gc.set_threshold(_YOUNG_OBJECTS)
        sys.setswitchinterval(_SWITCH_S)
        elapsed_ms = round((time.perf_counter() - started) * 1000)
        names = [policy.name for policy in held.policies.current.policies]
        log.info("ready", host=host, port=port, probe_port=probe_port, policies=names, elapsed_ms=elapsed_ms)

    return ready


async def warm_up(state: ServedState, scheduler: Scheduler) -> None:
    """Compile all expressions and review an object of each common kind in both phases, in a thread; then it is ready.

    A review that comes earlier may take its time on the loop: a worker would compile the same for itself alone.
    """

    def work() -> None:
        state.policies.current.compile_ahead_of_requests()
        for phase in Phase:
            for sample in SAMPLES:
                state.review(sample, phase, Deadline())

    scheduler.is_warm.clear()
    try:
        await asyncio.to_thread(work)
    finally:
        scheduler.is_warm.set()


class ReloadWatcher:
    """Watches the files and the cluster of a server, and reports, logs and counts each reload."""

    def __init__(self, held: ServedState, certificates: Certificates, counters: Counters, log: Log) -> None:
        self._held = held
        self._certificates = certificates
        self._certificate_error = ""
        self._counters = counters
        self._log = log
        self._counters.last_reload.update(dict.fromkeys((("policies",), ("context",), ("certificate",)), 1))
        self._params = LiveParamsChecker(lambda: held.policies.current, held.cluster, counters, log)

    def checks(self) -> dict[str, Check]:
        """Return the checks of /readyz, which must all pass for reviews to be answered."""
        checks: dict[str, Check] = {"policies": lambda: "", "certificate": self._certificate_validity_problem}
        if self._held.watched:
            checks["cluster"] = self._held.watched.why_not_ready
        if isinstance(policies := self._held.policies, LivePolicySet):
            checks["live policies"] = policies.explain_missing_policy_list
        return checks

    def remarks(self) -> dict[str, Check]:
        """Return the remarks of /readyz?verbose, which do not make the server unready."""
        policies = self._held.policies
        return {
            "policies": lambda: policies.error,
            "context": lambda: self._held.context.error,
            "certificate": lambda: self._certificate_error,
            "cluster": lambda: self._held.watched.describe_failures() if self._held.watched else "",
            "params": self._params.describe_mistakes,
            **({"live policies": policies.describe_problems} if isinstance(policies, LivePolicySet) else {}),
            "unbound policies": lambda: ", ".join(policies.current.unbound_policy_names),
        }

    def gauges(self, most_bytes: int) -> Gauges:
        """Return the figures of /metrics that this knows, by name; `most_bytes` is what all bounds add up to."""
        return {
            "policies": ("Policies in service.", lambda: len(self._held.policies.current.policies)),
            "certificate_expiry_seconds": ("When the serving certificate ends, Unix time.", self.certificate_ends),
            "memory_bound_bytes": ("What the bounds of all parts add up to.", lambda: most_bytes),
            "log_lines_dropped_total": ("Log lines that nobody read in time.", lambda: self._log.dropped_line_count),
            "live_policies": (
                "Policies and bindings that the cluster stores.",
                lambda: len(self._live_policies().objects),
            ),
            "live_policies_failing": (
                "Of these, those with errors: see their condition Compiled.",
                lambda: len(self._live_policies().failing_object_names()),
            ),
            **gauges_of_view(self._held.watched),
        }

    def _live_policies(self) -> LivePolicies:
        """Return the policies with what became of each stored object; none without live policies."""
        policies = self._held.policies
        return policies.live if isinstance(policies, LivePolicySet) else LivePolicies(policies.current)

    def certificate_ends(self) -> float:
        """Return when the served certificate expires, in seconds since 1970."""
        return validity_of_certificate(self._certificates.shown)[1].timestamp()

    def _certificate_validity_problem(self) -> str:
        begins, ends = validity_of_certificate(self._certificates.shown)
        if time.time() < begins.timestamp():
            return f"it is not valid before {begins:%Y-%m-%dT%H:%M:%SZ}; set the clock right or issue it anew"
        return "it has expired" if ends.timestamp() < time.time() else ""

    def background(self, period_s: float) -> dict[str, Work]:
        """Return the background tasks by name."""
        params: dict[str, Work] = {"params": self._params.watch} if self._held.watched else {}
        if isinstance(policies := self._held.policies, LivePolicySet):
            params["status of live policies"] = policies.write_status
        if not period_s:
            return params
        return {
            **params,
            "policies": lambda: watch(self._held.policies, period_s, self._on_policies_reloaded),
            "context": lambda: watch(
                self._held.context, period_s, lambda tried: self._log_and_count_reload("context", tried.error)
            ),
            "certificate": lambda: self._watch_certificates(period_s),
        }

    def _on_policies_reloaded(self, tried: ReloadableValue[PolicySet]) -> None:
        if self._held.watched and not tried.error:
            self._held.watched.replace_interests(tried.current.interests())
        self._log_and_count_reload("policies", tried.error)

    async def _watch_certificates(self, period_s: float) -> None:
        while True:
            await asyncio.sleep(period_s)
            try:
                changed = await asyncio.to_thread(self._certificates.reload)
            except ConfigurationError as error:
                if str(error) != self._certificate_error:
                    self._certificate_error = str(error)
                    self._log_and_count_reload("certificate", str(error))
            else:
                self._certificate_error = ""
                if changed:
                    self._log_and_count_reload("certificate", "")

    def _log_and_count_reload(self, what: str, error: str) -> None:
        outcome = "failure" if error else "success"
        self._counters.reloads[what, outcome] += 1
        self._counters.last_reload[what,] = 0 if error else 1
        if error:
            self._log.error("reload failed", what=what, error=error)
        else:
            self._log.info("reloaded", what=what)
