"""The codecs of the record batches of a partition, asked from a broker in Kafka's own protocol.

Shares no code with the service and needs nothing but Python.

    python3 batch_codecs.py <host:port> <topic> <partition>

Prints a line for each batch with records of clients: its first offset and `none`, `gzip`, `snappy`,
`lz4` or `zstd`. The broker has to be the leader of the partition. Sources: Kafka's protocol guide,
Fetch version 4 and record batch format version 2.
"""

import socket
import struct
import sys

FETCH, FETCH_VERSION = 1, 4
READ_COMMITTED = 1
WAIT_MS, BYTES_MAX = 500, 64 * 1_048_576
HEAD = struct.Struct(">qiibihi")
"""Of a batch: base offset, length, leader epoch, magic, checksum, attributes, last offset delta."""
BEFORE_LENGTH = 12
"""Bytes of the base offset and of the length, which doesn't count them."""
CODEC_MASK, CONTROL_MASK = 0x07, 0x20
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def text(value):
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def receive(connection, count):
    received = b""
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            sys.exit("the broker hung up")
        received += piece
    return received


def ask(connection, topic, partition, offset):
    """The batches from an offset on, as bytes, and where the partition ends."""
    header = struct.pack(">hhi", FETCH, FETCH_VERSION, 1) + text("batch-codecs")
    limits = struct.pack(">iiiib", -1, WAIT_MS, 1, BYTES_MAX, READ_COMMITTED)
    wanted = struct.pack(">iiqi", 1, partition, offset, BYTES_MAX)
    body = header + limits + struct.pack(">i", 1) + text(topic) + wanted
    connection.sendall(struct.pack(">i", len(body)) + body)
    answer = receive(connection, struct.unpack(">i", receive(connection, 4))[0])
    # Correlation, throttling, one topic with its name, one partition with its number.
    at = 4 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4
    error, _, stable_end, aborted = struct.unpack_from(">hqqi", answer, at)
    if error != 0:
        sys.exit(f"the broker answered with error {error}")
    at += 2 + 8 + 8 + 4 + 16 * max(0, aborted)
    (length,) = struct.unpack_from(">i", answer, at)
    return answer[at + 4 : at + 4 + max(0, length)], stable_end


def main(address, topic, partition):
    host, port = address.rsplit(":", 1)
    offset, end = 0, 1
    with socket.create_connection((host, int(port))) as connection:
        while offset < end:
            batches, end = ask(connection, topic, int(partition), offset)
            start = 0
            while start + HEAD.size <= len(batches):
                base, length, _, _, _, attributes, last = HEAD.unpack_from(batches, start)
                start += BEFORE_LENGTH + length
                offset = base + last + 1
                if not attributes & CONTROL_MASK:
                    print(base, CODECS[attributes & CODEC_MASK])


main(*sys.argv[1:])
