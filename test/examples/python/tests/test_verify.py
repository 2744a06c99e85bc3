"""Events and chains against the vectors of the repository, and what no vector has."""

import importlib.util
import json
import random
import struct
import unittest
from pathlib import Path

from alk_client import ChainVerifier, Link, canonical_json, verify_event
from alk_client.verify import NotCanonicalError, _decoder, link_hash, number_text

VERIFIER = Path(__file__).parents[4] / "src" / "exports" / "verifiers" / "verify.py"
VECTORS = Path(__file__).parents[4] / "schemas" / "vectors"


def vectors(name):
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def breaks_of(events, **options):
    """What is wrong with a chain, the lowest sequence number first."""
    chain = ChainVerifier(**options)
    found = [one for one in map(chain.add, events) if one is not None]
    return sorted([*found, *chain.finish()], key=lambda one: one.sequence_number or 0)


def first_of(breaks):
    return (breaks[0].reason, breaks[0].sequence_number) if breaks else None


class Canonical(unittest.TestCase):
    def test_texts_and_numbers_are_those_of_the_vectors(self):
        found = vectors("canonical-json")
        for one in found["canonical"]:
            self.assertEqual(canonical_json(_decoder.decode(one["json"])), one["jcs"], one["name"])
        for one in found["doubles"]:
            [double] = struct.unpack(">d", bytes.fromhex(one["ieee"]))
            self.assertEqual(number_text(double), one["jcs"])
        self.assertGreater(len(found["doubles"]), 10)

    def test_what_has_no_canonical_form_is_refused(self):
        for value in (float("nan"), float("inf"), 10**400, "\ud800", {"\ud800": 1}, object()):
            with self.assertRaises(NotCanonicalError):
                canonical_json([value])


class Vectors(unittest.TestCase):
    def test_the_chain_holds_and_its_texts_are_canonical(self):
        chain = vectors("alk-chain-v1")["chain"]
        self.assertEqual(breaks_of([one["event"] for one in chain]), [])
        for one in chain:
            check = verify_event(one["event"])
            self.assertTrue(check.valid)
            self.assertFalse(check.is_erased)

    def test_each_broken_chain_breaks_where_it_says(self):
        broken = vectors("alk-chain-v1")["broken"]
        for one in broken:
            found = first_of(breaks_of(one["events"]))
            self.assertEqual(found, (one["reason"], one["at_sequence"]))
        self.assertGreater(len(broken), 3)

    def test_each_stored_chain_breaks_where_it_says(self):
        for one in vectors("chain-cases")["stored_chains"]:
            with self.subTest(one["name"]):
                found = breaks_of([json.loads(line) for line in one["lines"]])
                wanted = one.get("break")
                # A stream sees the later of two swapped events first, which leaves a gap before it.
                self.assertEqual(
                    first_of(found), wanted and (wanted["reason"], wanted["at_sequence"])
                )

    def test_lines_in_another_spelling_are_found(self):
        for one in vectors("chain-cases")["stored_chains"]:
            if one.get("break") is not None:
                continue
            odd = []
            for at, line in enumerate(one["lines"]):
                for form in (line, line.encode(), line + "\n"):
                    check = verify_event(form)
                if not check.valid:
                    self.assertIn("the same event in other bytes", check.found.actual)
                    odd.append(at)
            self.assertEqual(odd, one.get("reformatted_lines", []), one["name"])


def altered(event, rng):
    """The event with one thing changed, added, taken out or moved, anywhere in it."""
    event = json.loads(json.dumps(event))
    place = rng.choice([event, event["actor"], event["resource"], event.get("metadata", event)])
    name = rng.choice([*place, "other"])
    act = rng.choice(["change", "remove", "move", "number"])
    if act == "remove" and name in place and isinstance(place.get(name), str):
        del place[name]
    elif act == "move":
        place[name] = place.pop(name, "x")
    elif act == "number":
        place[name] = rng.choice([1, 1.5, -0.0, 1e21, 2**60, True, None, ["a"], {"b": 1}])
    else:
        place[name] = rng.choice(["", "a", "0" * 64, "2026-01-01T00:00:00.000000Z"])
    return event


class Words(unittest.TestCase):
    """The verifier of evidence packs shares no code with this one, and says the same."""

    def test_are_those_of_the_verifier_of_packs(self):
        spec = importlib.util.spec_from_file_location("verify_pack", VERIFIER)
        pack = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(pack)
        chain = [one["event"] for one in vectors("alk-chain-v1")["chain"]]
        reasons = set()
        for seed in range(2000):
            rng = random.Random(seed)
            line = json.dumps(
                altered(rng.choice(chain), rng), separators=(",", ":"), ensure_ascii=False
            )
            event, text = pack.event_of(line)
            check = verify_event(line)
            if event is None:
                self.assertEqual(check.found.actual, "something else", line)
            elif not check.is_erased:
                wanted = pack.fault_of(line, event, text, event["tenant_id"], None)
                found = check.found and (
                    check.found.reason,
                    check.found.expected,
                    check.found.actual,
                )
                self.assertEqual(found, wanted, line)
                reasons.add(found and found[0])
        self.assertEqual(reasons, {None, "content_mismatch", "hash_mismatch"})


class Chains(unittest.TestCase):
    def setUp(self):
        self.events = [one["event"] for one in vectors("alk-chain-v1")["chain"]]

    def test_a_chain_forged_in_the_middle_is_found(self):
        forged = json.loads(json.dumps(self.events))
        forged[2]["outcome"] = "failure"
        [found] = breaks_of(forged)
        self.assertEqual(
            (found.reason, found.sequence_number, found.event_id),
            ("content_mismatch", 3, forged[2]["id"]),
        )
        self.assertIn("content_hash", found.expected)

    def test_a_forger_who_makes_the_hashes_anew_is_found_at_the_next_event(self):
        forged = json.loads(json.dumps(self.events))
        forged[2]["created_at"] = "2026-11-21T12:34:56.000001Z"
        forged[2]["hash"] = link_hash(forged[2])
        self.assertEqual(first_of(breaks_of(forged)), ("prev_hash_mismatch", 4))

    def test_goes_on_from_a_link_that_was_kept(self):
        chain = ChainVerifier()
        for event in self.events[:3]:
            self.assertIsNone(chain.add(event))
        kept = dict(chain.heads)
        self.assertEqual(kept, {"acme": Link(3, self.events[2]["hash"])})
        self.assertEqual(breaks_of(self.events[3:], heads=kept), [])
        wrong = {"acme": Link(3, "0" * 64)}
        self.assertEqual(
            first_of(breaks_of(self.events[3:], heads=wrong)), ("prev_hash_mismatch", 4)
        )

    def test_begins_at_the_first_event_unless_told_otherwise(self):
        self.assertEqual(first_of(breaks_of(self.events[2:])), ("sequence_gap", 1))
        self.assertEqual(breaks_of(self.events[2:], from_anywhere=True), [])
        # What comes before the first event is known, wherever one begins.
        other = {**self.events[0], "prev_hash": "1" * 64}
        other["hash"] = link_hash(other)
        self.assertEqual(
            first_of(breaks_of([other], from_anywhere=True)), ("prev_hash_mismatch", 1)
        )

    def test_keeps_tenants_apart(self):
        other = []
        before = "0" * 64
        for event in self.events[:3]:
            one = {**event, "tenant_id": "other", "prev_hash": before}
            before = one["hash"] = link_hash(one)
            other.append(one)
        mixed = [one for pair in zip(self.events, other) for one in pair]
        self.assertEqual(breaks_of(mixed), [])

    def test_an_event_that_comes_again_is_said_and_moves_nothing(self):
        again = [*self.events[:3], self.events[2], self.events[0], *self.events[3:]]
        self.assertEqual(
            [one.reason for one in breaks_of(again)], ["out_of_order", "duplicate_sequence"]
        )

    def test_what_is_no_event_is_no_crash(self):
        erasure = {
            **self.events[0],
            "action": "alk.event.erased",
            "metadata": {"sequence_number": []},
        }
        for junk in (
            "",
            "{",
            "[]",
            "null",
            b"\xff",
            "NaN",
            "[" * 100_000,
            {},
            {"actor": 1},
            erasure,
        ):
            self.assertIsNotNone(ChainVerifier().add(junk))
        deep = {**self.events[0], "metadata": {"a": "\ud800"}}
        self.assertIn("surrogate", verify_event(deep).found.actual)


if __name__ == "__main__":
    unittest.main()
