"""`claimgate serve`: the webhook itself. Puts policies, cluster view, certificates and the server together.

Knows flags and which part watches which files; rules and HTTP are elsewhere. FastAPI, the certificates' reader and the
kubernetes package are imported when they are first needed: an API server that waits for a rollout waits for us.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from webhook import assembly, logs
from webhook.commands import options
from webhook.config import PREFIX, Settings, size
from webhook.errors import ConfigurationError
from webhook.log_writer import LogWriter
from webhook.logs import Log
from webhook.server.door import Limits
from webhook.server.listen import Place
from webhook.server.runtime import Held, serve
from webhook.server.tls import Certificates, Files, key_warning
from webhook.server.worker_lane import WorkerLimits


def _variable(name: str) -> str:
    return f"{PREFIX}{name}"


Host: TypeAlias = Annotated[
    str, typer.Option(envvar=_variable("HOST"), metavar="ADDRESS", help="Address to listen on.")
]
Port: TypeAlias = Annotated[
    int,
    typer.Option(
        envvar=_variable("PORT"), min=0, max=65535, metavar="PORT", help="Port to listen on; 0 takes any free one."
    ),
]
TlsCert: TypeAlias = Annotated[
    Path | None, typer.Option(envvar=_variable("TLS_CERT"), metavar="FILE", help="Serving certificate, PEM.")
]
TlsKey: TypeAlias = Annotated[
    Path | None, typer.Option(envvar=_variable("TLS_KEY"), metavar="FILE", help="Its private key, PEM.")
]
ClientCa: TypeAlias = Annotated[
    Path | None,
    typer.Option(envvar=_variable("CLIENT_CA"), metavar="FILE", help="Take calls only from clients it signed."),
]
ClientName: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="With --client-ca: let in only clients whose certificate has this common name or this DNS, URI or email "
        "name; repeatable, or WEBHOOK_CLIENT_NAME with commas. Default: whomever it signed.",
    ),
]
ProbePort: TypeAlias = Annotated[
    int | None,
    typer.Option(
        envvar=_variable("PROBE_PORT"),
        min=0,
        max=65535,
        metavar="PORT",
        help="Serve /healthz, /readyz, /metrics and /version here, too, in plain HTTP; 0 takes any free port. Needed "
        "with --client-ca, since a kubelet has no client certificate. Off unless given: a port without TLS is opened "
        "only on purpose.",
    ),
]
ProbeHost: TypeAlias = Annotated[
    str | None,
    typer.Option(envvar=_variable("PROBE_HOST"), metavar="ADDRESS", help="Address of --probe-port. Default: --host."),
]
MaxConnections: TypeAlias = Annotated[
    int,
    typer.Option(
        envvar=_variable("MAX_CONNECTIONS"),
        min=1,
        metavar="COUNT",
        help="Open connections for reviews; one more ends the one that has been idle longest.",
    ),
]
Live: TypeAlias = Annotated[
    bool, typer.Option("--live", envvar=_variable("LIVE"), help="Look objects up in the cluster this runs in.")
]
Kubeconfig: TypeAlias = Annotated[
    Path | None, typer.Option(envvar=_variable("KUBECONFIG"), metavar="FILE", help="Look objects up in this cluster.")
]
Timeout: TypeAlias = Annotated[
    float,
    typer.Option(
        envvar=_variable("TIMEOUT"),
        min=0.1,
        metavar="SECONDS",
        help="Bound of one review; a call's own ?timeout= may be shorter.",
    ),
]
MaxBodyBytes: TypeAlias = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Largest body, such as 20Mi (the default).")
]
MaxInflightBodyBytes: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory for bodies above 64Ki of all calls together, such as 64Mi (the default); further ones wait.",
    ),
]
Drain: TypeAlias = Annotated[
    float,
    typer.Option(
        envvar=_variable("DRAIN"), min=0, metavar="SECONDS", help="How long to go on answering after SIGTERM."
    ),
]
Reload: TypeAlias = Annotated[
    float,
    typer.Option(
        envvar=_variable("RELOAD"), min=0, metavar="SECONDS", help="How often to look for changed files; 0 is never."
    ),
]
Workers: TypeAlias = Annotated[
    int,
    typer.Option(
        envvar=_variable("WORKERS"),
        min=1,
        max=64,
        metavar="NUMBER",
        help="Processes at a time for reviews that take too long for the event loop.",
    ),
]
WorkerMemory: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar=_variable("WORKER_MEMORY"),
        metavar="SIZE",
        help="What each of them may take beyond what it shares with the server, such as 96Mi.",
    ),
]
ApiServerText: TypeAlias = Annotated[
    bool | None, typer.Option("--api-server-text", help="Word denials as the API server's own policies do.")
]
LogLevel: TypeAlias = Annotated[str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")]


def command(
    *,
    host: Host = "0.0.0.0",  # noqa: S104
    port: Port = 8443,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    client_ca: ClientCa = None,
    client_name: ClientName = None,
    probe_port: ProbePort = None,
    probe_host: ProbeHost = None,
    max_connections: MaxConnections = 1000,
    policies: options.Policies = None,
    context: options.Context = None,
    use_live: Live = False,
    kubeconfig: Kubeconfig = None,
    timeout: Timeout = 10.0,
    max_body_bytes: MaxBodyBytes = None,
    workers: Workers = 2,
    worker_memory: WorkerMemory = "64Mi",
    max_inflight_body_bytes: MaxInflightBodyBytes = None,
    drain: Drain = 5.0,
    reload: Reload = 2.0,
    api_server_text: ApiServerText = None,
    log_level: LogLevel = None,
    workloads: options.Workloads = None,
    cel_engine: options.Engine = None,
    kubernetes_version: options.Version = None,
) -> int:
    """Answer AdmissionReviews of an API server over HTTPS, until SIGTERM, SIGHUP or SIGINT.

    Flags win over WEBHOOK_* of the environment. Changed policies, context and certificates are taken up while it runs;
    broken ones leave the last good ones in service, and /readyz?verbose says so.
    """
    started = time.perf_counter()
    chosen = assembly.read_settings(
        policies=policies,
        context=context,
        workloads=workloads,
        cel_engine=cel_engine,
        kubernetes_version=kubernetes_version,
        max_body_bytes=max_body_bytes,
        max_inflight_body_bytes=max_inflight_body_bytes,
        api_server_text=api_server_text,
        log_level=log_level,
    )
    limits = _limits(chosen, timeout)
    names = _client_names(client_name, client_ca)
    writer = LogWriter.to_stderr()
    log = Log(chosen.log_level, writer=writer)
    logs.capture(log)
    files = _files(tls_cert, tls_key, client_ca)
    certificates = Certificates(files)
    held = Held.make(chosen, use_live or kubeconfig is not None, kubeconfig, log)
    place = Place(
        host=host,
        port=port,
        tls=certificates.listening,
        client_names=names,
        probe_host=probe_host or host,
        probe_port=probe_port,
        max_connections=max_connections,
        drain_s=drain,
    )
    _warn(log, files, probe_port)
    lane = WorkerLimits(workers=workers, memory_bytes=size("--worker-memory", worker_memory))
    serve(held, certificates, place, limits, log=log, reload_s=reload, started=started, workers=lane)
    return 0


def _limits(chosen: Settings, timeout: float) -> Limits:
    body, inflight = chosen.max_body_bytes, chosen.max_inflight_body_bytes
    if inflight < body:
        found = f"--max-inflight-body-bytes: {inflight} bytes are less than one body of --max-body-bytes ({body})"
        raise ConfigurationError(f"{found}; raise the first or lower the second")
    return Limits(body_bytes=body, inflight_body_bytes=inflight, timeout_s=timeout)


def _client_names(given: list[str] | None, client_ca: Path | None) -> tuple[str, ...]:
    """The names of --client-name, or of the environment."""
    found = given or os.environ.get(_variable("CLIENT_NAME"), "").split(",")
    names = tuple(name.strip() for name in found if name.strip())
    if names and client_ca is None:
        problem = "--client-name: without --client-ca no client shows a certificate, so nobody's name is known"
        raise ConfigurationError(f"{problem}; name the authority of the clients with --client-ca")
    return names


def _warn(log: Log, files: Files, probe_port: int | None) -> None:
    """Say what is allowed but probably not meant."""
    if files.client_ca and probe_port is None:
        problem = "--client-ca asks kubelets for a certificate, too, and they have none: probes of this port fail"
        log.warning("probes need a port of their own", reason=problem, fix="set --probe-port, such as 8081")
    if warning := key_warning(files.key):
        log.warning("the private key is readable by others", reason=warning)


def _files(certificate: Path | None, key: Path | None, client_ca: Path | None) -> Files:
    if certificate is None or key is None:
        advice = "issue a pair with `claimgate certs issue --dir DIR`"
        raise ConfigurationError(f"--tls-cert and --tls-key: an API server calls over TLS only; {advice}")
    return Files(certificate=certificate, key=key, client_ca=client_ca)
