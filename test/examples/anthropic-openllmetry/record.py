"""Records what OpenLLMetry's instrumentation of the Anthropic SDK sends for two calls of a model with a
tool between them. To record anew, in an environment of its own:

    pip install anthropic==2.12.0 opentelemetry-sdk==1.45.2 \
        opentelemetry-instrumentation-anthropic==0.62.4 opentelemetry-exporter-otlp-proto-common==1.45.2
    PYTHONPATH=.. python record.py
"""

from anthropic import Anthropic
from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor
from recording import provider, serve, write_run

AnthropicInstrumentor().instrument(tracer_provider=provider)


def message(content, reason, tokens):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "fake-model-1",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
    }


CALL = {"type": "tool_use", "id": "toolu_1", "name": "tides", "input": {"place": "Husum"}}
TEXT = {"type": "text", "text": "High water is at 14:20."}
answers = [message([CALL], "tool_use", (120, 14)), message([TEXT], "end_turn", (150, 9))]
client = Anthropic(base_url=serve(answers), api_key="none")
schema = {"type": "object", "properties": {"place": {"type": "string"}}}
tools = [{"name": "tides", "description": "Tide tables of a place.", "input_schema": schema}]
messages = [{"role": "user", "content": "When is high water in Husum?"}]

tracer = provider.get_tracer("tide-service")
with tracer.start_as_current_span("answer a question"):
    client.messages.create(model="fake-model-1", max_tokens=64, messages=messages, tools=tools)
    with tracer.start_as_current_span("execute_tool tides") as span:
        span.set_attribute("gen_ai.operation.name", "execute_tool")
        span.set_attribute("gen_ai.tool.name", "tides")
        span.set_attribute("gen_ai.tool.call.id", "toolu_1")
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "14:20"}
    messages += [{"role": "assistant", "content": [CALL]}, {"role": "user", "content": [result]}]
    client.messages.create(model="fake-model-1", max_tokens=64, messages=messages, tools=tools)
write_run()
