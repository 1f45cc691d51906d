"""`claimgate serve`: the webhook itself. Puts policies, cluster view, certificates and the server together.

Knows flags and which part watches which files; rules and HTTP are elsewhere. FastAPI, the certificates' reader and the
kubernetes package are imported when they are first needed: an API server that waits for a rollout waits for us.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from webhook import logs
from webhook.commands import assembly, options
from webhook.commands.serving import Held, serve
from webhook.config import PREFIX, size
from webhook.errors import ConfigurationError
from webhook.log_writer import LogWriter
from webhook.logs import Log
from webhook.server.connections import Patience
from webhook.server.door import Limits
from webhook.server.listen import Place
from webhook.server.tls import Certificates, Files
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
    policies: options.Policies = None,
    context: options.Context = None,
    use_live: Live = False,
    kubeconfig: Kubeconfig = None,
    timeout: Timeout = 10.0,
    max_body_bytes: MaxBodyBytes = None,
    workers: Workers = 2,
    worker_memory: WorkerMemory = "96Mi",
    drain: Drain = 5.0,
    reload: Reload = 2.0,
    api_server_text: ApiServerText = None,
    log_level: LogLevel = None,
    workloads: options.Workloads = None,
    cel_engine: options.Engine = None,
    kubernetes_version: options.Version = None,
) -> int:
    """Answer AdmissionReviews of an API server over HTTPS, until SIGTERM or SIGINT.

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
        api_server_text=api_server_text,
        log_level=log_level,
    )
    writer = LogWriter.to_stderr()
    log = Log(chosen.log_level, writer=writer)
    logs.capture(log)
    certificates = Certificates(_files(tls_cert, tls_key, client_ca))
    held = Held.make(chosen, use_live or kubeconfig is not None, kubeconfig, log)
    place = Place(host=host, port=port, tls=certificates.listening, patience=Patience(), drain_s=drain)
    limits = Limits(body_bytes=chosen.max_body_bytes, timeout_s=timeout)
    lane = WorkerLimits(workers=workers, memory_bytes=size("--worker-memory", worker_memory))
    serve(held, certificates, place, limits, log=log, reload_s=reload, started=started, workers=lane)
    return 0


def _files(certificate: Path | None, key: Path | None, client_ca: Path | None) -> Files:
    if certificate is None or key is None:
        advice = "issue a pair with `claimgate certs issue --dir DIR`"
        raise ConfigurationError(f"--tls-cert and --tls-key: an API server calls over TLS only; {advice}")
    return Files(certificate=certificate, key=key, client_ca=client_ca)
