"""Records what OpenInference's instrumentation of LangChain sends for one run of a LangGraph agent with
a tool. To record anew, in an environment of its own:

    pip install langgraph==1.2.22 langchain-core==1.7.2 opentelemetry-sdk==1.45.2 \
        openinference-instrumentation-langchain==0.1.80 opentelemetry-exporter-otlp-proto-common==1.45.2
    PYTHONPATH=.. python record.py
"""

from langgraph_agent import run
from openinference.instrumentation import using_attributes
from openinference.instrumentation.langchain import LangChainInstrumentor
from recording import provider, write_run

LangChainInstrumentor().instrument(tracer_provider=provider)
with using_attributes(session_id="session-1", user_id="user-7"):
    run()
write_run()
