"""A kubeconfig with insecure-skip-tls-verify: requests go to the server without a warning for each."""

import ssl
import warnings
from datetime import UTC, datetime

import yaml

from certs.issue import authority, serving
from tests.cluster.server import CONFIGS, ApiServer, config, page
from webhook.cluster.connection import connect_to_cluster


def test_requests_to_an_unverified_server_give_no_warning(server: ApiServer, tmp_path):
    pair = serving(authority("test", now=datetime.now(UTC)), ["localhost"], now=datetime.now(UTC))
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    file = server.kubeconfig(tmp_path)
    changed = yaml.safe_load(file.read_text())
    cluster = {"server": f"https://127.0.0.1:{server.server_port}", "insecure-skip-tls-verify": True}
    changed["clusters"][0]["cluster"] = cluster
    file.write_text(yaml.safe_dump(changed))
    with warnings.catch_warnings():
        assert connect_to_cluster(file).get(CONFIGS, {}) == page(config("a"))[1]
