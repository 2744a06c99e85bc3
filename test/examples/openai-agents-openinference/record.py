"""Records what OpenInference's instrumentation of the OpenAI Agents SDK sends for one run with a tool and
a hand-over. To record anew, in an environment of its own:

    pip install openai-agents==0.24.0 opentelemetry-sdk==1.45.2 \
        openinference-instrumentation-openai-agents==2.6.0 \
        opentelemetry-exporter-otlp-proto-common==1.45.2
    PYTHONPATH=.. python record.py
"""

import json

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from openinference.instrumentation import using_attributes
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from recording import provider, serve, write_run

OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


def call(identifier, name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": identifier, "type": "function", "function": function}


def completion(message, tokens):
    read, written = tokens
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "fake-model-1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, **message},
                "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        },
    }


answers = [
    completion({"tool_calls": [call("call_1", "transfer_to_tide_agent", {})]}, (60, 5)),
    completion({"tool_calls": [call("call_2", "tides", {"place": "Husum"})]}, (120, 14)),
    completion({"content": "High water is at 14:20."}, (150, 9)),
]


@function_tool
def tides(place: str) -> str:
    """Tide tables of a place."""
    return f"High water in {place} at 14:20"


client = AsyncOpenAI(base_url=f"{serve(answers)}/v1", api_key="none")
model = OpenAIChatCompletionsModel(model="fake-model-1", openai_client=client)
tide_agent = Agent(name="Tide agent", instructions="You know tides.", model=model, tools=[tides])
front = Agent(name="Front desk", instructions="Hand over.", model=model, handoffs=[tide_agent])

with using_attributes(session_id="session-1", user_id="user-7"):
    Runner.run_sync(front, "When is high water in Husum?")
write_run()
