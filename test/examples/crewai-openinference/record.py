"""Records what OpenInference's instrumentation of CrewAI sends for a crew of one agent with a tool. To
record anew, in an environment of its own:

    pip install crewai==1.15.30 opentelemetry-sdk==1.45.2 \
        openinference-instrumentation-crewai==1.1.21 opentelemetry-exporter-otlp-proto-common==1.45.2
    CREWAI_DISABLE_TELEMETRY=true PYTHONPATH=.. python record.py
"""

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool
from openinference.instrumentation import using_attributes
from openinference.instrumentation.crewai import CrewAIInstrumentor
from recording import provider, write_run

CrewAIInstrumentor().instrument(tracer_provider=provider)

ANSWERS = [
    'Thought: I look it up.\nAction: tides\nAction Input: {"place": "Husum"}\n',
    "Thought: I now know.\nFinal Answer: High water is at 14:20.",
]


class FakeModel(BaseLLM):
    def call(self, messages, *args, **kwargs):
        return ANSWERS.pop(0)

    def supports_function_calling(self):
        return False


@tool("tides")
def tides(place: str) -> str:
    """Tide tables of a place."""
    return f"High water in {place} at 14:20"


agent = Agent(
    role="Tide expert",
    goal="Answer questions about tides",
    backstory="You know tides.",
    llm=FakeModel(model="fake-model-1"),
    tools=[tides],
)
task = Task(description="When is high water in Husum?", expected_output="A time", agent=agent)
with using_attributes(session_id="session-1", user_id="user-7"):
    Crew(agents=[agent], tasks=[task]).kickoff()
write_run()
