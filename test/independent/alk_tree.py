"""The Merkle tree of RFC 9162, section 2.1, written from its recursive definitions and nothing else.

Reads one JSON object: {"hashes": [hex, ...], "sizes": [n, ...], "inclusion": [[m, n], ...],
"consistency": [[m, n], ...]}; leaf i has the 32 bytes of hashes[i] as its input. Writes the roots
of these sizes and the proofs, hex, in the same order.
"""
import hashlib
import json
import sys


def sha256(data):
    return hashlib.sha256(data).digest()


def split(n):
    """k, the largest power of two smaller than n: k < n <= 2k."""
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def mth(d):
    """2.1.1: the Merkle tree hash of an ordered list of inputs."""
    if len(d) == 0:
        return sha256(b"")
    if len(d) == 1:
        return sha256(b"\x00" + d[0])
    k = split(len(d))
    return sha256(b"\x01" + mth(d[:k]) + mth(d[k:]))


def path(m, d):
    """2.1.3.1: the inclusion proof of the (m+1)th input."""
    if len(d) == 1:
        return []
    k = split(len(d))
    if m < k:
        return path(m, d[:k]) + [mth(d[k:])]
    return path(m - k, d[k:]) + [mth(d[:k])]


def subproof(m, d, whole):
    """2.1.4.1."""
    if m == len(d):
        return [] if whole else [mth(d)]
    k = split(len(d))
    if m <= k:
        return subproof(m, d[:k], whole) + [mth(d[k:])]
    return subproof(m - k, d[k:], False) + [mth(d[:k])]


def proof(m, d):
    """2.1.4.1: the consistency proof between the first m inputs and all of them, 0 < m < n."""
    return subproof(m, d, True)


def to_hex(hashes):
    return [one.hex() for one in hashes]


asked = json.load(sys.stdin)
inputs = [bytes.fromhex(text) for text in asked["hashes"]]
json.dump(
    {
        "roots": to_hex(mth(inputs[:size]) for size in asked["sizes"]),
        "inclusion": [to_hex(path(m, inputs[:n])) for m, n in asked["inclusion"]],
        "consistency": [to_hex(proof(m, inputs[:n])) for m, n in asked["consistency"]],
    },
    sys.stdout,
)
