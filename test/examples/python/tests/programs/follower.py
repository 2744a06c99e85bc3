"""Follows the events until it has seen so many numbers, and prints them: follower.py COUNT."""

import json
import sys

from alk_client import AlkClient

tail = AlkClient().tail(after=0, action="test.counted")
numbers = []
for event in tail:
    numbers.append(event["metadata"]["n"])
    if len(numbers) == int(sys.argv[1]):
        tail.close()
print(json.dumps({"numbers": numbers}))
