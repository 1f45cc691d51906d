"""Declares the settings of the server. Other classes of the server use these defaults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from webhook.logs.structured import FORMATS, LEVELS, Format, Level
from webhook.settings import values
from webhook.settings.setting import REQUIRED, declare_setting
from webhook.settings.shared import ReportSettings

_PORTS: Final = 65535
DenialLevel: TypeAlias = Literal["never", "debug", "info"]
DENIAL_LEVELS: Final[tuple[DenialLevel, ...]] = get_args(DenialLevel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings(ReportSettings):
    """The address of the server, its clients, the limits of one review, and its start and stop.

    server/memory_bounds.py adds up the memory.

    Attributes:
        max_body_bytes: the size limit of a body. The review of an UPDATE of a 2.9 MB object had 17.4 MB, because the
            review contains both objects with HTML escapes.
        max_inflight_body_bytes: the memory for all bodies together. The default is enough for one body of
            max_body_bytes and for small bodies.
        max_connections: the limit of open connections. An API server needs a connection for each simultaneous call.
            Three API servers with 600 requests each need 900 connections if half of the requests call a webhook.
    """

    host: str = declare_setting(
        "0.0.0.0",  # noqa: S104 - a Pod has several
        values.text_type("ADDRESS"),
        "Address to listen on; :: means all IPv4 and IPv6 addresses.",
    )
    port: int = declare_setting(
        8443, values.whole_number_type("PORT", 0, _PORTS), "Port to listen on; 0 means any free port."
    )
    tls_cert: Path | None = declare_setting(None, values.file_type(), "Serving certificate, PEM.", unset=REQUIRED)
    tls_key: Path | None = declare_setting(
        None, values.file_type(), "Private key of the certificate, PEM.", unset=REQUIRED
    )
    client_ca: Path | None = declare_setting(
        None, values.file_type(), "Accept only clients with a certificate of this authority.", unset="any client"
    )
    client_name: tuple[str, ...] = declare_setting(
        (),
        values.name_list_type("NAME"),
        "With --client-ca: accept only certificates with this common name, DNS, URI or email name.",
        unset="all certificates of the authority",
    )
    probe_port: int | None = declare_setting(
        None,
        values.whole_number_type("PORT", 0, _PORTS),
        "Port for /healthz, /readyz, /metrics and /version in plain HTTP; 0 means any free port. Needed with "
        "--client-ca.",
        unset="none",
    )
    probe_host: str | None = declare_setting(
        None, values.text_type("ADDRESS"), "Address of --probe-port.", unset="the address of --host"
    )
    max_connections: int = declare_setting(
        1000,
        values.whole_number_type("COUNT", 1),
        "Open connections for reviews. At the limit, the server ends a connection of the client "
        "address with the most connections.",
    )
    live: bool = declare_setting(False, values.switch_type(), "Look up objects in the cluster where the server runs.")
    kubeconfig: Path | None = declare_setting(
        None, values.file_type(), "Look up objects in the cluster of this kubeconfig.", unset="none"
    )
    kube_context: str | None = declare_setting(
        None,
        values.text_type("NAME"),
        "Use this context of the kubeconfig.",
        unset="the current context",
    )
    view_memory: int = declare_setting(
        96 << 20,
        values.byte_size_type(minimum=1 << 20),
        "Memory for objects that policies look up. If the memory is full, the server drops the largest kind of objects "
        "in the largest namespace, and lookups of the dropped objects fail.",
    )
    live_policies: bool = declare_setting(
        False,
        values.switch_type(),
        "Also evaluate the policies of claimgate.dev in the cluster, and write errors into their status.",
    )
    authorizer: bool = declare_setting(
        False, values.switch_type(), "Answer `authorizer` in policies with SubjectAccessReviews of the API server."
    )
    events: bool = declare_setting(
        False,
        values.switch_type(),
        "If an object breaks a rule and passes with a warning, write an Event on its top owner, such as "
        "the Deployment of a Pod.",
    )
    timeout: float = declare_setting(
        10.0, values.seconds_type(0.1), "Time for one review; a shorter `?timeout=` of the call takes precedence."
    )
    max_body_bytes: int = declare_setting(20 << 20, values.byte_size_type(), "Largest body of a call.")
    max_inflight_body_bytes: int = declare_setting(
        22 << 20, values.byte_size_type(), "Memory for all bodies above 64Ki together. A body that does not fit waits."
    )
    workers: int = declare_setting(
        2,
        values.whole_number_type("COUNT", 1, 64),
        "Processes for reviews that take too long for the event loop.",
    )
    worker_memory: int = declare_setting(
        32 << 20,
        values.byte_size_type(minimum=16 << 20),
        "Memory of each worker, in addition to the memory that the worker shares with the server.",
    )
    memory: int | None = declare_setting(
        None,
        values.byte_size_type(minimum=64 << 20),
        "Memory of the server. If the bounds of the server's parts add up to more, the server does not start.",
        unset="the limit of the container",
    )
    drain: float = declare_setting(
        5.0, values.seconds_type(0), "How long the server still answers after SIGTERM or SIGHUP."
    )
    reload: float = declare_setting(
        2.0, values.seconds_type(0), "Time between two checks for changed files; 0 means no checks."
    )
    log_level: Level = declare_setting("info", values.choice_type(*LEVELS), "Lowest level of log lines.")
    log_format: Format = declare_setting(
        "json", values.choice_type(*FORMATS), "Write log lines as JSON objects, or as text for people."
    )
    log_denials: DenialLevel = declare_setting(
        "never",
        values.choice_type(*DENIAL_LEVELS),
        "Log the texts of denials, which quote objects. debug: only with --log-level debug. info: also with "
        "--log-level info.",
    )
    traces: bool = declare_setting(
        False,
        values.switch_type(),
        "Send an OpenTelemetry span of each review to OTEL_EXPORTER_OTLP_ENDPOINT; needs the extra `otel`.",
    )

    @property
    def is_live(self) -> bool:
        """Return whether the server reads a cluster."""
        return self.live or self.kubeconfig is not None or self.kube_context is not None


DEFAULTS: Final = ServerSettings()
