"""Reads `alk.events` from its beginning with confluent-kafka and checks the chains while it reads.

    pip install confluent-kafka
    python3 consume.py [--until-end] [--partial] [topic]

`--until-end` stops where the topic ends now. With `--partial` a tenant may begin at any number: the
topic has lost its beginning to ALK_EVENTS_RETENTION. KAFKA_BROKERS, KAFKA_TLS, KAFKA_TLS_CA_FILE and
KAFKA_SASL_* say how to connect. Exit code 1: a break, each of which has a line.
"""

import argparse
import hashlib
import os
import re
import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition


def text(name):
    return rf'"(?P<{name}>(?:[^"\\]|\\.)*)"'


# The one form in which events are stored. Its parts are canonical JSON (RFC 8785) already, so hashes
# are taken of the text as it is, and nothing has to be parsed or written anew.
STORED_FORM = re.compile(
    rf'\{{"id":{text("id")},"timestamp":{text("timestamp")}'
    rf',"actor":\{{"id":{text("actor_id")},"type":{text("actor_type")}(?:,"email":{text("email")})?\}}'
    rf',"action":{text("action")}'
    rf',"resource":\{{"id":{text("resource_id")},"type":{text("resource_type")}'
    rf'(?:,"name":{text("name")})?\}}'
    rf',"outcome":{text("outcome")}(?:,"metadata":(?P<metadata>\{{.*\}}))?'
    rf',"tenant_id":{text("tenant")},"sequence_number":(?P<sequence>[1-9][0-9]*)'
    rf',"created_at":{text("created_at")},"prev_hash":{text("prev_hash")}'
    rf'(?:,"details_salt":{text("salt")},"details_hash":{text("details_hash")})?'
    rf',"content_hash":{text("content_hash")},"hash":{text("hash")}\}}',
    re.DOTALL,
)
FIRST_PREV_HASH = "0" * 64
SHOWN_CHARACTERS = 80


def sha256(value):
    return hashlib.sha256(value.encode()).hexdigest()


def details_hash(event):
    """Hash of what may be erased elsewhere: e-mail, metadata, name of the resource."""
    details = []
    if event["email"] is not None:
        details.append(f'"actor_email":"{event["email"]}"')
    if event["metadata"] is not None:
        details.append(f'"metadata":{event["metadata"]}')
    if event["name"] is not None:
        details.append(f'"resource_name":"{event["name"]}"')
    return sha256(f"{event['salt'] or ''}\n{{{','.join(details)}}}") if details else None


def content_hash(event):
    hashed = event["details_hash"]
    return sha256(
        f'{{"action":"{event["action"]}"'
        f',"actor":{{"id":"{event["actor_id"]}","type":"{event["actor_type"]}"}}'
        + (f',"details_hash":"{hashed}"' if hashed is not None else "")
        + f',"id":"{event["id"]}","outcome":"{event["outcome"]}"'
        f',"resource":{{"id":"{event["resource_id"]}","type":"{event["resource_type"]}"}}'
        f',"timestamp":"{event["timestamp"]}"}}'
    )


def link_hash(event):
    names = ["tenant", "sequence", "created_at", "content_hash", "prev_hash"]
    return sha256("\n".join(["alk-chain-v1", *(event[name] for name in names)]))


class ChainCheck:
    """Takes records in the order of their partitions; prints a line for each break."""

    def __init__(self, is_partial):
        self.is_partial = is_partial
        self.heads = {}
        """Of each tenant sequence number and hash of the last event."""
        self.events = self.breaks = 0

    def take(self, partition, offset, key, value):
        self.events += 1
        place = f"partition {partition} offset {offset}"
        found = STORED_FORM.fullmatch(value)
        if found is None:
            shown = repr(value[:SHOWN_CHARACTERS])
            self.report(f"tenant {key} sequence ? ({place}): record is {shown}, expected a stored event")
            return
        event = found.groupdict()
        tenant, sequence = event["tenant"], int(event["sequence"])
        wrong = next((one for one in self.expectations(event) if one[1] != one[2]), None)
        if wrong is not None:
            member, is_now, expected = wrong
            self.report(
                f"tenant {tenant} sequence {sequence} ({place}):"
                f" {member} is {is_now or 'absent'}, expected {expected or 'none'}"
            )
        elif event["action"] == "alk.event.erased":
            # The topic keeps the details; whoever has copied them has to delete them.
            erased = re.search('"sequence_number":([0-9]+)', event["metadata"] or "")
            number = erased[1] if erased else "?"
            print(f"erased: tenant {tenant} sequence {number}: delete its details from your copies")
        self.heads[tenant] = (sequence, event["hash"])

    def expectations(self, event):
        """Member, what it is, and what it has to be."""
        head = self.heads.get(event["tenant"])
        sequence = int(event["sequence"])
        if head is None and self.is_partial and sequence > 1:
            head = (sequence - 1, event["prev_hash"])
        last, prev_hash = head or (0, FIRST_PREV_HASH)
        yield "details_hash", event["details_hash"], details_hash(event)
        yield "content_hash", event["content_hash"], content_hash(event)
        yield "sequence_number", sequence, last + 1
        yield "prev_hash", event["prev_hash"], prev_hash
        yield "hash", event["hash"], link_hash(event)

    def report(self, what):
        self.breaks += 1
        print(f"broken: {what}", flush=True)

    def finish(self):
        seen = f"{self.events} events of {len(self.heads)} tenants"
        print(f"broken: {self.breaks} breaks in {seen}" if self.breaks else f"intact: {seen}")
        return 1 if self.breaks else 0


def settings():
    env = os.environ
    tls, user = env.get("KAFKA_TLS") == "true", env.get("KAFKA_SASL_USERNAME")
    result = {
        "bootstrap.servers": env.get("KAFKA_BROKERS", "127.0.0.1:9092"),
        "client.id": "chain-check",
        # The client wants one, and asks who coordinates it; it joins none and commits no offset.
        "group.id": "chain-check-python",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "security.protocol": ("SASL_" if user else "") + ("SSL" if tls else "PLAINTEXT"),
    }
    if "KAFKA_TLS_CA_FILE" in env:
        result["ssl.ca.location"] = env["KAFKA_TLS_CA_FILE"]
    if user:
        result["sasl.mechanism"] = env.get("KAFKA_SASL_MECHANISM", "plain").upper()
        result["sasl.username"], result["sasl.password"] = user, env["KAFKA_SASL_PASSWORD"]
    return result


def read(consumer, topic, check, until_end):
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    if not partitions:
        raise KafkaException(f"there is no topic {topic}")
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    open_partitions = set(partitions)
    while open_partitions:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is None:
            key, value = (message.key() or b"").decode(), (message.value() or b"").decode("utf-8", "replace")
            check.take(message.partition(), message.offset(), key, value)
        elif message.error().code() != KafkaError._PARTITION_EOF:
            raise KafkaException(message.error())
        elif until_end:
            open_partitions.discard(message.partition())


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--until-end", action="store_true")
    parser.add_argument("--partial", action="store_true")
    parser.add_argument("topic", nargs="?", default="alk.events")
    given = parser.parse_args()
    check = ChainCheck(given.partial)
    consumer = Consumer(settings())
    try:
        read(consumer, given.topic, check, given.until_end)
    except KeyboardInterrupt:
        pass
    finally:
        consumer.close()
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
