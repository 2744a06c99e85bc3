"""Records what OpenInference's instrumentation of LlamaIndex sends for one question over two documents:
embeddings, retrieval and a call of the model, all of them LlamaIndex's own doubles. To record anew, in
an environment of its own:

    pip install llama-index-core==0.14.25 opentelemetry-sdk==1.45.2 \
        openinference-instrumentation-llama-index==4.6.1 opentelemetry-exporter-otlp-proto-common==1.45.2
    PYTHONPATH=.. python record.py
"""

from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.embeddings.mock_embed_model import MockEmbedding
from llama_index.core.llms import MockLLM
from openinference.instrumentation import using_attributes
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from recording import provider, write_run

LlamaIndexInstrumentor().instrument(tracer_provider=provider)
Settings.llm = MockLLM(max_tokens=8)
Settings.embed_model = MockEmbedding(embed_dim=4)
documents = [Document(text="High water is at 14:20."), Document(text="Low water is at 20:31.")]
index = VectorStoreIndex.from_documents(documents)
with using_attributes(session_id="session-1", user_id="user-7"):
    index.as_query_engine(similarity_top_k=1).query("When is high water?")
write_run()
