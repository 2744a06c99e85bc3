"""Logs numbered events, flushes after every few and says so: writer.py COUNT EACH PAUSE_SECONDS.

Address and key come from the environment. Prints "flushed N" when the events before N are
acknowledged, and ends with 1 if any is not in the end."""

import sys
import time

from alk_client import AlkClient

# Seconds that the service may be away at the end.
FLUSH_SECONDS = 90.0


def main(count: int, each: int, pause: float) -> None:
    alk = AlkClient()
    for n in range(count):
        alk.log("test.counted", actor="system:writer", resource="test:1", metadata={"n": n})
        time.sleep(pause)
        if (n + 1) % each == 0:
            alk.flush(FLUSH_SECONDS)
            print("flushed", n + 1, flush=True)
    alk.flush(FLUSH_SECONDS)
    print("flushed", count, flush=True)


main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
