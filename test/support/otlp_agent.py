"""An agent run exported by the OpenTelemetry SDK for Python: otlp_agent.py <url> <key> <agent id>.

Runs only where opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http are installed.
"""
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

url, key, agent = sys.argv[1:]
provider = TracerProvider(resource=Resource.create({"service.name": "planner-service"}))
exporter = OTLPSpanExporter(
    endpoint=f"{url}/v1/traces", headers={"authorization": f"Bearer {key}"}
)
provider.add_span_processor(BatchSpanProcessor(exporter))
tracer = provider.get_tracer("alk-tests")

root_attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": agent}
with tracer.start_as_current_span("invoke_agent", attributes=root_attributes):
    with tracer.start_as_current_span(
        "chat", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    ) as chat:
        chat.add_event("gen_ai.choice", {"index": 0})
    link = trace.Link(chat.get_span_context())
    try:
        with tracer.start_as_current_span(
            "execute_tool", attributes={"gen_ai.operation.name": "execute_tool"}, links=[link]
        ):
            raise TimeoutError("the tool did not answer")
    except TimeoutError:
        pass
provider.shutdown()
