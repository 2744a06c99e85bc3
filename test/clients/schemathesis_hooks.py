"""
What JSON Schema can't say. A request that the schemas allow may be refused with 400 where two values
contradict each other (`invalid_range`, `page` beside a cursor, `id` beside `idempotency_key`, a kept
receipt whose ids are not as many as its sequence numbers), for a cursor that no page gave, for a text
that is no signed note, for commas and stars in a filter, for a date that doesn't exist, and for free-form JSON that can't be stored exactly (numbers that no double
holds, U+0000). Everything else that is refused although it is valid is a failure.
"""
import schemathesis


@schemathesis.check
def valid_data_is_accepted(ctx, response, case):
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code != 400:
        return None
    try:
        error = response.json()
    except ValueError:
        error = {}
    code = error.get("code") or (error.get("error") or {}).get("code")
    excused = (
        "no double holds",
        "holds U+0000",
        "page: can't be given together with",
        "id: can't be sent with idempotency_key",
        "is not a cursor of this list",
        "new events, the sequence numbers",
        # With events appended a receipt says where: the three come together.
        "receipt.first_sequence_number: must be",
        "receipt.last_sequence_number: is missing",
        "receipt.head_hash: must be",
        "is not a C2SP signed note",
        # Commas and stars in the text of a filter.
        "has an empty value",
        "may have * only at the end of a value",
        # The 31st of a month that has none, or a time from now before 1970.
        "must be an RFC 3339 date-time from 1970 to 2261, a date, or",
    )
    if code != "invalid_range" and not any(words in response.text for words in excused):
        raise AssertionError(f"valid data is refused with {code}: {response.text[:300]}")
    return None
