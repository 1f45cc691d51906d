"""A small HTTP server that speaks the list and watch protocol of an API server, for one group of kinds."""

import json
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.freshness import WatchTimes

WHOLE = "application/json"
CONFIG = GroupVersionKind("", "v1", "ConfigMap")
RUNTIME = GroupVersionKind("trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime")
CONFIGS = "/api/v1/configmaps"
TIMES = WatchTimes(discovery_s=0.0)
"""Each watch asks for its own discovery, because a test changes what is served from one moment to the next."""
RUNTIMES = "/apis/trainer.kubeflow.org/v2/clustertrainingruntimes"


def config(name, version="1", **data):
    metadata = {"name": name, "namespace": "n", "resourceVersion": version, "managedFields": [{}]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def event(kind, value):
    return {"type": kind, "object": value}


def page(*items, version="10", more=None, api="v1"):
    return 200, {"apiVersion": api, "items": list(items), "metadata": {"resourceVersion": version, "continue": more}}


def resources(*rows):
    return 200, {"resources": [{"name": name, "kind": kind, "namespaced": scope} for name, kind, scope in rows]}


def eventually(claim):
    end = time.monotonic() + 5
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.005)


class AsText(dict):
    """An object that is sent as text, because Python cannot write its nested JSON."""

    def __init__(self, shallow, text):
        super().__init__(shallow)
        self.text = text


def encoded(value):
    if isinstance(value, AsText):
        return value.text
    if isinstance(value, dict) and any(isinstance(each, AsText) for each in value.get("items") or ()):
        rest = json.dumps({key: held for key, held in value.items() if key != "items"}).encode()
        return rest[:-1] + b', "items": [' + b", ".join(map(encoded, value["items"])) + b"]}"
    return json.dumps(value).encode()


class ApiServer(ThreadingHTTPServer):
    """An API server that answers by path.

    Attributes:
        answers: (code, body) for a path.
        watches: queues of lines for the path of a collection and its selectors. None ends the watch, and bytes are sent
            unchanged.
        objects: all objects of the path of a collection. Its lists, also those of a namespace, support limit, continue,
            both selectors and PartialObjectMetadata.
        is_silent: whether the server accepts connections and sends nothing.
    """

    daemon_threads = True

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.answers = {}
        self.objects = {}
        self.watches = {}
        self.refused_watches = {}
        self.asked = []
        self.written = []
        self.refuses_writes = False
        self.refused_writes = {}
        self.is_silent_to_writes = False
        self.new_watch = threading.Event()
        self.is_silent = False
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
        if self.server.is_silent:
            time.sleep(1.5)  # longer than clients wait
            return
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.server.asked.append((parts.path, query, dict(self.headers)))
        selectors = [query[key] for key in ("fieldSelector", "labelSelector") if key in query]
        if query.get("watch") and parts.path in self.server.refused_watches:
            self.answer(*self.server.refused_watches[parts.path])
            return
        if query.get("watch"):
            self.watch("?".join([parts.path, *selectors]))
            return
        if (found := self.listed(parts.path, query)) is not None:
            self.answer(200, found)
            return
        key = f"{parts.path}?{query['continue']}" if "continue" in query else parts.path
        code, body = self.server.answers.get(key, (404, {"kind": "Status", "message": "the server could not find it"}))
        self.answer(code, body)

    def do_PATCH(self):
        """Apply an object as server-side apply does, but replace the whole object."""
        collection, name = self.written()
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.is_silent_to_writes:
            self.close_connection = True
            return
        if self.server.refuses_writes:
            self.answer(403, {"message": f"{collection.rpartition('/')[2]}.openreports.io is forbidden"})
            return
        if name in self.server.refused_writes:
            self.answer(*self.server.refused_writes[name])
            return
        kept = [each for each in self.server.objects[collection] if each["metadata"]["name"] != name]
        self.server.objects[collection] = [*kept, body]
        self.answer(200, body)

    def do_DELETE(self):
        collection, name = self.written()
        if name in self.server.refused_writes:
            self.answer(*self.server.refused_writes[name])
            return
        kept = [each for each in self.server.objects[collection] if each["metadata"]["name"] != name]
        is_gone = len(kept) == len(self.server.objects[collection])
        self.server.objects[collection] = kept
        self.answer(404 if is_gone else 200, {"message": "not found"})

    def written(self):
        """Record a write. Return the collection of all namespaces, and the name of the object."""
        path = urlsplit(self.path).path
        self.server.written.append((self.command, path, dict(self.headers)))
        *before, name = path.split("/")
        before = before[:-3] + before[-1:] if "namespaces" in before else before
        return "/".join(before), name

    def listed(self, path, query):
        """Return a page of the selected objects; None if the collection has another answer."""
        before, _, inside = path.partition("/namespaces/")
        namespace, _, plural = inside.partition("/")
        items = self.server.objects.get(f"{before}/{plural}" if plural else path)
        if items is None:
            return None
        items = [each for each in items if not plural or each["metadata"]["namespace"] == namespace]
        if name := query.get("fieldSelector", "").removeprefix("metadata.name="):
            items = [each for each in items if each["metadata"]["name"] == name]
        if selector := query.get("labelSelector"):
            key, values = selector.removesuffix(")").replace("=", " in (").split(" in (")
            items = [each for each in items if each["metadata"].get("labels", {}).get(key) in values.split(",")]
        start = int(query.get("continue", 0))
        end = start + int(query["limit"])
        if self.headers["accept"].startswith(f"{WHOLE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"):
            partial = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
            items = [{**partial, "metadata": each["metadata"]} for each in items]
        more = str(end) if end < len(items) else ""
        return {"items": items[start:end], "metadata": {"resourceVersion": "10", "continue": more}}

    def answer(self, code, body):
        data = body if isinstance(body, bytes) else encoded(body)
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
