"""A small HTTP server that speaks the list and watch protocol of an API server, for one group of kinds."""

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class ApiServer(ThreadingHTTPServer):
    """Answers by path. `answers` maps a path to (code, body); `watches` maps a collection's path to queues of lines.

    A queued None ends the watch; a queued bytes object is sent as it is.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = {}
        self.watches = {}
        self.asked = []
        self.new_watch = threading.Event()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def kubeconfig(self, folder):
        file = folder / "kubeconfig"
        cluster = {"server": f"http://127.0.0.1:{self.server_port}"}
        file.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": {"token": "secret"}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        return file

    def send(self, path, *events):
        for event in events:
            self.watches.setdefault(path, queue.Queue()).put(event)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.server.asked.append((parts.path, query, dict(self.headers)))
        if query.get("watch"):
            self.watch(parts.path)
            return
        key = f"{parts.path}?{query['continue']}" if "continue" in query else parts.path
        code, body = self.server.answers.get(key, (404, {"kind": "Status", "message": "the server could not find it"}))
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def watch(self, path):
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        events = self.server.watches.setdefault(path, queue.Queue())
        try:
            while (event := events.get()) is not None:
                data = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            return

    def log_message(self, *args):
        pass
