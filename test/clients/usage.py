"""Uses the client that openapi-python-client has generated: metadata, a cursor, pages, refusals."""
import importlib
import pkgutil
import sys

import alk_client
from alk_client import AuthenticatedClient
from alk_client.api.executions import list_executions, start_execution
from alk_client.api.ingest import create_event
from alk_client.api.query import list_events
from alk_client.models import (
    AuditEventInput,
    CreatedAuditEvent,
    CreateEventSync,
    ExecutionInput,
    ListEventsOrder,
)

for module in pkgutil.walk_packages(alk_client.__path__, "alk_client."):
    importlib.import_module(module.name)

url, key = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key, timeout=60)

sent = []
for n in range(1, 6):
    body = AuditEventInput.from_dict(
        {
            "actor": {"id": "user_1", "type": "human"},
            "action": "document.read",
            "resource": {"id": f"doc_{n}", "type": "document"},
            "outcome": "success",
            "metadata": {"n": n, "nested": {"list": [1, "two", None]}},
        }
    )
    stored = create_event.sync(client=client, body=body, sync=CreateEventSync.TRUE)
    assert isinstance(stored, CreatedAuditEvent), stored
    assert stored.metadata.to_dict() == body.metadata.to_dict(), stored.metadata
    sent.append(stored.sequence_number)

found, after = [], 0
while True:
    page = list_events.sync(
        client=client, order=ListEventsOrder.ASC, page_size=2, after_sequence=after
    )
    if not page.events:
        break
    found += [event.sequence_number for event in page.events]
    after = found[-1]
assert found[-len(sent):] == sent and found == sorted(found), (sent, found)

for n in range(3):
    body = ExecutionInput.from_dict({"agent_id": "agent", "metadata": {"n": n}})
    assert start_execution.sync(client=client, body=body).metadata.to_dict() == {"n": n}
executions, number = [], 1
while True:
    page = list_executions.sync(client=client, page=number, page_size=2)
    if not page.executions:
        break
    executions += [execution.id for execution in page.executions]
    number += 1
assert len(set(executions)) == len(executions) == page.total >= 3, executions

refused = list_events.sync(client=client, page=0)
assert refused.error.code == "invalid_request", refused
print(f"python client: {len(found)} events by cursor, {len(executions)} executions by page")
