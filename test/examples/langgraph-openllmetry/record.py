"""Records what OpenLLMetry's instrumentation of LangChain sends for one run of a LangGraph agent with a
tool. To record anew, in an environment of its own:

    pip install langgraph==1.2.22 langchain-core==1.7.2 opentelemetry-sdk==1.45.2 \
        opentelemetry-instrumentation-langchain==0.62.4 opentelemetry-exporter-otlp-proto-common==1.45.2
    PYTHONPATH=.. python record.py
"""

from langgraph_agent import run
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from recording import provider, write_run

LangchainInstrumentor().instrument(tracer_provider=provider)
run({"metadata": {"session_id": "session-1", "user_id": "user-7"}})
write_run()
