"""Reads every event, checks the chain, and prints what it found as one line of JSON."""

import json

from alk_client import AlkClient, ChainVerifier

alk = AlkClient()
chain = ChainVerifier()
numbers = []
breaks = []
for event in alk.events(page_size=100):
    found = chain.add(event)
    if found is not None:
        breaks.append(str(found))
    if event["action"] == "test.counted":
        numbers.append(event["metadata"]["n"])
breaks += map(str, chain.finish())
print(json.dumps({"numbers": numbers, "breaks": breaks, "events": chain.events}))
