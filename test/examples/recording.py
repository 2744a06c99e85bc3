"""What all recorders of this folder have in common: where spans are kept, a model that answers from a
list, and the file that is written. Nothing leaves the machine."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

memory = InMemorySpanExporter()
provider = TracerProvider(resource=Resource.create({"service.name": "tide-service"}))
provider.add_span_processor(SimpleSpanProcessor(memory))

STATUS_CODES = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
KINDS = ["SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER", "SPAN_KIND_CLIENT"]


def write_run():
    """Write run.json: an export of OTLP in JSON, of all spans that have ended."""
    export = MessageToDict(encode_spans(memory.get_finished_spans()))
    # OTLP writes ids as hex and enums as numbers, protobuf's own JSON as base64 and as names.
    for of_resource in export["resourceSpans"]:
        for of_scope in of_resource["scopeSpans"]:
            for span in of_scope["spans"]:
                for link in [span, *span.get("links", [])]:
                    for name in ("traceId", "spanId", "parentSpanId"):
                        if name in link:
                            link[name] = base64.b64decode(link[name]).hex()
                span["kind"] = KINDS.index(span.get("kind", KINDS[1]))
                if "code" in span.get("status", {}):
                    span["status"]["code"] = STATUS_CODES.get(span["status"]["code"], 0)
    with open("run.json", "w", encoding="utf-8") as file:
        json.dump(export, file, indent=2, ensure_ascii=False)
        file.write("\n")


def serve(answers):
    """Answer requests on the loopback interface from a list; the address."""

    class Model(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps(answers.pop(0)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
