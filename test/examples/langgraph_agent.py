"""An agent of LangGraph with a tool, and a fake model that answers from a list."""

from typing import Annotated, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode


class FakeModel(GenericFakeChatModel):
    """Says of what model it is and how many tokens it took, as real ones do."""

    def bind_tools(self, tools, **kwargs):
        return self

    @property
    def _identifying_params(self):
        return {"model": "fake-model-1"}


class State(TypedDict):
    messages: Annotated[list, add_messages]


def answer(content, calls, tokens):
    read, written = tokens
    usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    return AIMessage(
        content=content,
        tool_calls=calls,
        usage_metadata=usage,
        response_metadata={"model_name": "fake-model-1"},
    )


@tool
def tides(place: str) -> str:
    """Tide tables of a place."""
    return f"High water in {place} at 14:20"


def run(config=None):
    call = {"name": "tides", "args": {"place": "Husum"}, "id": "call_tide_1", "type": "tool_call"}
    answers = [answer("", [call], (120, 14)), answer("High water is at 14:20.", [], (150, 9))]
    model = FakeModel(messages=iter(answers))

    def ask(state: State):
        return {"messages": [model.invoke(state["messages"])]}

    def goes_on(state: State):
        return "tools" if state["messages"][-1].tool_calls else END

    builder = StateGraph(State)
    builder.add_node("agent", ask)
    builder.add_node("tools", ToolNode([tides]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", goes_on)
    builder.add_edge("tools", "agent")
    graph = builder.compile(name="tide-agent")
    graph.invoke({"messages": [HumanMessage("When is high water in Husum?")]}, config)
