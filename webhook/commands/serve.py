"""`claimgate serve`: starts the webhook server with its policies, cluster view and certificates.

Imports FastAPI, the module for certificates and the kubernetes package when they are first needed, for a quick start.
"""

from __future__ import annotations

import time

from webhook.admission import private_api as message_texts
from webhook.cel.library import private_api as regex_api
from webhook.cluster.connection import connect_to_cluster
from webhook.commands import options
from webhook.errors import ConfigurationError
from webhook.logs import structured
from webhook.logs.structured import Log, LogWriter
from webhook.server import memory_bounds, operating_system
from webhook.server.runtime import serve
from webhook.server.served_state import ServedState
from webhook.server.tls import Certificates, TlsFiles, key_warning
from webhook.settings.serving import ServerSettings


@options.add_flags_of_verb(ServerSettings, "serve")
def command(*, settings: ServerSettings) -> int:
    """Answer AdmissionReviews of an API server over HTTPS, until SIGTERM, SIGHUP or SIGINT.

    The server applies changed policies, context and certificates while it runs. If a new file has a mistake, the
    server keeps the last good file, and /readyz?verbose reports the mistake.
    """
    started = time.perf_counter()
    for used in (message_texts, regex_api):
        used.check_installed_version()
    _refuse_contradictions(settings)
    writer = LogWriter.to_stderr()
    log = Log(settings.log_level, writer=writer, format=settings.log_format)
    structured.capture_library_logs(log)
    files = _certificate_files(settings)
    certificates = Certificates(files)
    if settings.authorizer and not settings.is_live:
        raise ConfigurationError("--authorizer: name the API server to ask with --live or --kubeconfig")
    if settings.events and not settings.is_live:
        raise ConfigurationError("--events: name the API server to write to with --live or --kubeconfig")
    if settings.live_policies and not (settings.is_live and settings.reload):
        raise ConfigurationError(
            "--live-policies: needs --live or --kubeconfig, and --reload above 0 to follow changes"
        )
    connection = connect_to_cluster(settings.kubeconfig, settings.kube_context) if settings.is_live else None
    state = ServedState.make(
        settings,
        connection,
        log,
        may_ask=settings.authorizer,
        live_policies=settings.live_policies,
        view_memory=settings.view_memory,
    )
    bounds = memory_bounds.MemoryBounds(settings, operating_system.unreclaimable_bytes(), state.view_bytes)
    bounds.check(memory_bounds.limit(settings))
    serve(
        state,
        certificates,
        settings,
        log,
        started=started,
        most_bytes=bounds.total,
        warn_of_settings=lambda: _warn_of_settings(log, files, settings.probe_port),
    )
    return 0


def _refuse_contradictions(settings: ServerSettings) -> None:
    body, inflight = settings.max_body_bytes, settings.max_inflight_body_bytes
    if inflight < body:
        problem = f"--max-inflight-body-bytes: {inflight} bytes are less than one body of --max-body-bytes ({body})"
        raise ConfigurationError(f"{problem}; raise the first or lower the second")
    if settings.client_name and settings.client_ca is None:
        problem = "--client-name: clients show a certificate only with --client-ca"
        raise ConfigurationError(f"{problem}; name the authority of the clients with --client-ca")


def _warn_of_settings(log: Log, files: TlsFiles, probe_port: int | None) -> None:
    """Warn about settings that are allowed but probably not intended."""
    if files.client_ca and probe_port is None:
        problem = "--client-ca requires a certificate of every client, and a kubelet has none: probes of this port fail"
        log.warning("probes need a separate port", reason=problem, fix="set --probe-port, such as 8081")
    if warning := key_warning(files.key):
        log.warning("other users can read the private key", reason=warning)


def _certificate_files(settings: ServerSettings) -> TlsFiles:
    if settings.tls_cert is None or settings.tls_key is None:
        advice = "issue a pair with `claimgate certs issue --dir DIR`"
        raise ConfigurationError(
            f"--tls-cert and --tls-key: are required, because an API server calls webhooks over TLS only; {advice}"
        )
    return TlsFiles(certificate=settings.tls_cert, key=settings.tls_key, client_ca=settings.client_ca)
