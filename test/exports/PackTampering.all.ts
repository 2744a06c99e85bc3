/**
 * What can be done to a pack behind the service's back, and that all verifiers find it and name it
 * at the right place. Whoever tampers here fits sums and manifest; what he lacks is the key.
 */
import { createHash } from "node:crypto"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { TestChain as Chain } from "./support/Chains.ts"
import { TestChain } from "./support/Chains.ts"
import { PackEditor, zipOf } from "./support/PackEditor.ts"
import { checkpointOf, otherSigner, PackWorld, signer } from "./support/PackWorld.ts"
import { type Given, problemsOf, type Report, Verifiers } from "./support/Verifiers.ts"

const COUNT = 40
const VICTIM = 23
const ERASED = 11

const EVENTS = "events.ndjson"
const LINKS = "links.ndjson"

const chain = new TestChain("acme", ERASED + 4)
chain.erase(ERASED)
while (chain.length < COUNT) chain.add()
const whole = chain.length

let verifiers: Verifiers
let original: Buffer

beforeAll(async () => {
  verifiers = await Verifiers.open()
  original = await new PackWorld(chain).pack({ checkpoints: [10, 30] })
})
afterAll(() => verifiers.close())

const edited = (change: (pack: PackEditor) => unknown): PackEditor => {
  const pack = new PackEditor(original)
  change(pack)
  return pack
}

const check = (pack: PackEditor, given: Given = {}): Promise<Report> =>
  verifiers.check(pack.zip(), given)

const assertFound = (report: Report, ...problems: ReadonlyArray<string>): void => {
  assert.strictEqual(report.verdict, "tampered")
  const found = problemsOf(report)
  for (const problem of problems) assert.include(found, problem)
}

/** The sequences of everything found, each once; files as a whole aside. */
const sequencesOf = ({ problems }: Report): ReadonlyArray<number> => [
  ...new Set(problems.flatMap(({ sequence_number }) => sequence_number ?? []))
]

type Json = Record<string, any>

/** Another value of the same kind. */
const other = (value: unknown): unknown => {
  if (typeof value === "number") return value + 1
  if (typeof value !== "string") throw new Error("no leaf")
  const last = value.at(-1)!
  const flipped = String.fromCodePoint(last.codePointAt(0)! ^ 1)
  return `${value.slice(0, -last.length)}${flipped}`
}

const leavesOf = (value: Json, path: ReadonlyArray<string> = []): Array<ReadonlyArray<string>> =>
  Object.entries(value).flatMap(([key, member]) =>
    typeof member === "object" && member !== null
      ? leavesOf(member as Json, [...path, key])
      : [[...path, key]]
  )

const changedAt = (line: string, path: ReadonlyArray<string>): string => {
  const value = JSON.parse(line) as Json
  const owner = path.slice(0, -1).reduce<Json>((inner, key) => inner[key] as Json, value)
  const name = path.at(-1)!
  owner[name] = other(owner[name])
  return JSON.stringify(value)
}

const changeLine = (pack: PackEditor, file: string, at: number, change: (line: string) => string) =>
  pack.edit(file, (lines) => lines.map((line, index) => (index === at - 1 ? change(line) : line)))

describe("a pack that nobody touched", () => {
  it("is authentic for all verifiers", async () => {
    const report = await verifiers.check(original, { key: signer.vkey })
    assert.strictEqual(report.verdict, "authentic")
    assert.deepStrictEqual(report.problems, [])
  })

  it("verifies as a ZIP with the numbers of one of more than 4 GB", async () => {
    const { files } = edited(() => {})
    assert.strictEqual((await verifiers.check(zipOf(files, true))).verdict, "consistent")
  })

  it("verifies after unpacking and packing with other tools", async () => {
    assert.strictEqual((await check(edited(() => {}))).verdict, "consistent")
  })
})

describe("an event with one field changed", () => {
  for (const path of leavesOf(chain.event(VICTIM) as unknown as Json)) {
    it(`is named: ${path.join(".")}`, async () => {
      const pack = edited((files) =>
        changeLine(files, EVENTS, VICTIM, (line) => changedAt(line, path)).settle()
      )
      const report = await check(pack)
      assert.strictEqual(report.verdict, "tampered")
      assert.include(sequencesOf(report), VICTIM)
      assert.include(problemsOf(report), "manifest.sig null signature_invalid")
      // A new place makes two places wrong at most: the old and the new one.
      assert.isAtMost(sequencesOf(report).length, path[0] === "sequence_number" ? 2 : 1)
    })
  }

  it("is found without any change to the sums by its file, too", async () => {
    const pack = edited((files) =>
      changeLine(files, EVENTS, VICTIM, (line) => changedAt(line, ["outcome"]))
    )
    assertFound(
      await check(pack),
      `${EVENTS} null file_mismatch`,
      `${EVENTS} ${VICTIM} content_mismatch`
    )
  })

  const spellings: ReadonlyArray<readonly [string, (line: string) => string]> = [
    ["a space more", (line) => line.replace('"actor":', '"actor": ')],
    ["a member more", (line) => line.replace('"actor":{', '"actor":{"role":"admin",')],
    ["a member twice", (line) => line.replace('"outcome":', '"outcome":"failure","outcome":')],
    [
      "members in another order",
      (line) => line.replace(/("id":"evt-\d+"),("timestamp":"[^"]+")/, "$2,$1")
    ],
    ["an escape that is not needed", (line) => line.replace('"user-', '"\\u0075ser-')],
    ["a byte that is no UTF-8", (line) => line.replace("evt-", "evt\ufffd-")]
  ]
  for (const [name, spell] of spellings) {
    it(`is found in other bytes: ${name}`, async () => {
      const pack = edited((files) => changeLine(files, EVENTS, VICTIM, spell).settle())
      if (name.includes("UTF-8")) {
        const bytes = Buffer.from(pack.files.get(EVENTS)!)
        const at = bytes.indexOf(Buffer.from("\ufffd"))
        pack.set(
          EVENTS,
          Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff]), bytes.subarray(at + 3)])
        )
        pack.settle()
      }
      const report = await check(pack)
      assertFound(report, `${EVENTS} ${VICTIM} content_mismatch`)
      assert.deepStrictEqual(sequencesOf(report), [VICTIM])
    })
  }

  it("is found when it is no JSON any more", async () => {
    const pack = edited((files) =>
      changeLine(files, EVENTS, VICTIM, (line) => line.slice(0, 90)).settle()
    )
    const report = await check(pack)
    assertFound(report, `${EVENTS} ${VICTIM} content_mismatch`)
    assert.deepStrictEqual(sequencesOf(report), [VICTIM])
  })
})

describe("a link with one field changed", () => {
  for (const name of ["sequence_number", "created_at", "content_hash", "prev_hash", "hash"]) {
    it(`is named: ${name}`, async () => {
      const pack = edited((files) =>
        changeLine(files, LINKS, VICTIM, (line) => changedAt(line, [name])).settle()
      )
      const report = await check(pack)
      assert.strictEqual(report.verdict, "tampered")
      assert.include(sequencesOf(report), VICTIM)
      const inLinks = report.problems.filter(({ file }) => file === LINKS)
      assert.strictEqual(inLinks[0]?.sequence_number, VICTIM)
    })
  }
})

describe("lines", () => {
  const cases: ReadonlyArray<
    readonly [string, (pack: PackEditor) => unknown, ReadonlyArray<string>]
  > = [
    [
      "an event that was dropped",
      (pack) => pack.edit(EVENTS, (lines) => lines.toSpliced(VICTIM - 1, 1)),
      [`${EVENTS} ${VICTIM} sequence_gap`]
    ],
    [
      "an event and its link that were dropped",
      (pack) => {
        pack.edit(EVENTS, (lines) => lines.toSpliced(VICTIM - 1, 1))
        pack.edit(LINKS, (lines) => lines.toSpliced(VICTIM - 1, 1))
      },
      [`${LINKS} ${VICTIM} sequence_gap`]
    ],
    [
      "the first events, dropped with their links",
      (pack) => {
        pack.edit(EVENTS, (lines) => lines.slice(3))
        pack.edit(LINKS, (lines) => lines.slice(3))
      },
      [`${LINKS} 1 sequence_gap`]
    ],
    [
      "the last events, dropped",
      (pack) => pack.edit(EVENTS, (lines) => lines.slice(0, VICTIM - 1)),
      [`${EVENTS} ${VICTIM} tail_missing`]
    ],
    [
      "the tail, dropped with its links",
      (pack) => {
        pack.edit(EVENTS, (lines) => lines.slice(0, VICTIM - 1))
        pack.edit(LINKS, (lines) => lines.slice(0, VICTIM - 1))
      },
      [`${LINKS} ${VICTIM} tail_missing`]
    ],
    [
      "two events that changed places",
      (pack) =>
        pack.edit(EVENTS, (lines) =>
          lines.with(VICTIM - 1, lines[VICTIM]!).with(VICTIM, lines[VICTIM - 1]!)
        ),
      [`${EVENTS} ${VICTIM} sequence_gap`, `${EVENTS} ${VICTIM} out_of_order`]
    ],
    [
      "two links that changed places",
      (pack) =>
        pack.edit(LINKS, (lines) =>
          lines.with(VICTIM - 1, lines[VICTIM]!).with(VICTIM, lines[VICTIM - 1]!)
        ),
      [`${LINKS} ${VICTIM} sequence_gap`]
    ],
    [
      "all events in descending order",
      (pack) => pack.edit(EVENTS, (lines) => lines.toReversed()),
      [`${EVENTS} 1 sequence_gap`]
    ],
    [
      "an event that stands twice",
      (pack) => pack.edit(EVENTS, (lines) => lines.toSpliced(VICTIM, 0, lines[VICTIM - 1]!)),
      [`${EVENTS} ${VICTIM} duplicate_sequence`]
    ],
    [
      "an event that was inserted",
      (pack) =>
        pack.edit(EVENTS, (lines) => {
          const forged = chain.branch(VICTIM - 1)
          forged.add({ id: "forged" })
          return lines.toSpliced(VICTIM - 1, 0, forged.bodies.at(-1)!)
        }),
      [`${EVENTS} ${VICTIM} hash_mismatch`, `${EVENTS} ${VICTIM} duplicate_sequence`]
    ],
    [
      "an event that was inserted, with everything behind it renumbered",
      (pack) => {
        const forged = chain.branch(VICTIM - 1)
        forged.add({ id: "forged" })
        const moved = (lines: ReadonlyArray<string>, own: string) => [
          ...lines.slice(0, VICTIM - 1),
          own,
          ...lines.slice(VICTIM - 1).map((line) => changedAt(line, ["sequence_number"]))
        ]
        pack.edit(EVENTS, (lines) => moved(lines, forged.bodies.at(-1)!))
      },
      [`${EVENTS} ${VICTIM} hash_mismatch`]
    ],
    [
      "an event replaced by one that is consistent in itself",
      (pack) => {
        const forged = chain.branch(VICTIM - 1)
        forged.add({ outcome: "failure" })
        changeLine(pack, EVENTS, VICTIM, () => forged.bodies.at(-1)!)
      },
      [`${EVENTS} ${VICTIM} hash_mismatch`]
    ],
    [
      "an event of another tenant",
      (pack) =>
        changeLine(pack, EVENTS, VICTIM, () => new TestChain("globex", VICTIM).bodies.at(-1)!),
      [`${EVENTS} ${VICTIM} prev_hash_mismatch`]
    ],
    [
      "an empty line",
      (pack) => pack.edit(EVENTS, (lines) => lines.toSpliced(VICTIM - 1, 0, "")),
      [`${EVENTS} ${VICTIM} content_mismatch`]
    ],
    [
      "an event without an end",
      (pack) => pack.set(EVENTS, pack.text(EVENTS).slice(0, -40)),
      [`${EVENTS} ${whole} content_mismatch`]
    ]
  ]
  for (const [name, change, problems] of cases) {
    it(`are found and named: ${name}`, async () => {
      const report = await check(
        edited((pack) => {
          change(pack)
          return pack.settle()
        })
      )
      assertFound(report, ...problems)
      const first = problems[0]!.split(" ")[1]!
      assert.strictEqual(Math.min(...sequencesOf(report)), Number(first))
    })
  }

  it("are found though verification.json was made to fit: the tail dropped", async () => {
    const shorter = chain.branch(VICTIM - 1)
    const pack = edited((files) => {
      files.edit(EVENTS, (lines) => lines.slice(0, VICTIM - 1))
      files.edit(LINKS, (lines) => lines.slice(0, VICTIM - 1))
      resized(files, shorter).settle()
    })
    assertFound(
      await check(pack),
      `checkpoints/${whole}.txt ${VICTIM} tail_missing`,
      `checkpoints/30.txt ${VICTIM} tail_missing`,
      "manifest.sig null signature_invalid"
    )
    const kept = [checkpointOf(chain, 35).note]
    assertFound(await check(pack, { kept }), `kept-0.txt ${VICTIM} tail_missing`)
  })
})

/** Make everything that counts and names fit a chain that is no longer the signed one. */
const resized = (pack: PackEditor, told: Chain): PackEditor => {
  const { created_at, hash, sequence_number } = told.event(told.length)
  const head = { sequence_number, hash, created_at }
  const count = told.length
  pack.json("verification.json", (report) => {
    Object.assign(report, { head, events_checked: count, events_in_bounds: count })
    report["last_sequence_number"] = count
  })
  return pack.json("manifest.json", (manifest) => {
    Object.assign(manifest, { head, last_sequence_number: count })
    Object.assign(manifest["counts"], { events: count, links: count })
  })
}

const linkLine = (body: string): string => {
  const { content_hash, created_at, hash, prev_hash, sequence_number } = JSON.parse(body) as Json
  return JSON.stringify({ sequence_number, created_at, content_hash, prev_hash, hash })
}

/** A pack whose events from `from` on are others, freshly chained; everything is made to fit. */
const rewritten = (from: number): { pack: PackEditor; told: Chain } => {
  const told = chain.branch(from - 1)
  while (told.length < whole) told.add({ actor: { id: "nobody", type: "system" } })
  const pack = edited((files) => {
    files.setLines(EVENTS, told.bodies)
    files.setLines(LINKS, told.bodies.map(linkLine))
    resized(files, told).settle()
  })
  return { pack, told }
}

describe("a tail that was rewritten and freshly chained", () => {
  const FROM = 33

  it("contradicts the checkpoint in the pack", async () => {
    const report = await check(rewritten(FROM).pack)
    assertFound(report, `checkpoints/${whole}.txt ${whole} checkpoint_mismatch`)
    // What an older checkpoint covers is not accused.
    const { actual } = report.problems.find(({ reason }) => reason === "checkpoint_mismatch")!
    assert.include(actual, `the events 31 to ${whole}`)
  })

  const signedAnew = (key: typeof signer) => {
    const { pack, told } = rewritten(FROM)
    for (const size of [10, 30, whole]) {
      pack.set(`checkpoints/${size}.txt`, checkpointOf(told, size, key).note)
    }
    pack.set("keys/vkeys.txt", `${key.vkey}\n`)
    pack.settle()
    const manifest = pack.files.get("manifest.json")!
    const root = createHash("sha256").update(manifest).digest("base64")
    const text = `alk/acme/evidence-pack-v2\n${manifest.length}\n${root}\n`
    return pack.set("manifest.sig", `${text}\n${key.sign(text)}`).sums()
  }

  it("signed with another key is found by whoever knows the service's key", async () => {
    const pack = signedAnew(otherSigner)
    assert.strictEqual((await check(pack)).verdict, "consistent")
    const report = await check(pack, { key: signer.vkey })
    assertFound(report, "manifest.sig null signature_invalid")
  })

  it("signed with the service's own key is found by whoever kept an older checkpoint", async () => {
    const pack = signedAnew(signer)
    assert.strictEqual((await check(pack, { key: signer.vkey })).verdict, "authentic")
    const kept = [checkpointOf(chain, 25).note, checkpointOf(chain, 38).note]
    const report = await check(pack, { key: signer.vkey, kept })
    assert.deepStrictEqual(problemsOf(report), ["kept-1.txt 38 checkpoint_mismatch"])
    assert.include(report.problems[0]!.actual, "the events 31 to 38")
  })
})

describe("checkpoints", () => {
  const forge = (pack: PackEditor, change: (note: string) => string) =>
    pack.set("checkpoints/30.txt", change(pack.text("checkpoints/30.txt"))).settle()

  it("forged without the key are named", async () => {
    const root = createHash("sha256").update("another").digest("base64")
    const pack = edited((files) =>
      forge(files, (note) => note.replace(/\n30\n.+\n/, `\n30\n${root}\n`))
    )
    assertFound(await check(pack), "checkpoints/30.txt 30 checkpoint_mismatch")
  })

  it("of another size than their name are named", async () => {
    const pack = edited((files) => forge(files, () => files.text("checkpoints/10.txt")))
    assertFound(await check(pack), "checkpoints/30.txt 30 checkpoint_mismatch")
  })

  it("are not checked with keys in a file that is none of C2SP's", async () => {
    const pack = edited((files) =>
      files.set("keys/vkeys.txt", files.text("keys/jwks.json")).settle()
    )
    assertFound(await check(pack), "manifest.sig null signature_invalid")
  })

  it("of another tenant are named", async () => {
    const note = checkpointOf(new TestChain("globex", 30)).note
    assertFound(
      await check(edited((files) => forge(files, () => note))),
      "checkpoints/30.txt 30 checkpoint_mismatch"
    )
  })

  it("signed with a key that the pack does not name are named", async () => {
    const note = checkpointOf(chain, 30, otherSigner).note
    assertFound(
      await check(edited((files) => forge(files, () => note))),
      "checkpoints/30.txt 30 checkpoint_mismatch"
    )
  })

  it("that are signed, but of other events, are named", async () => {
    const lying = chain.branch(20)
    while (lying.length < 30) lying.add({ outcome: "error" })
    const note = checkpointOf(lying).note
    assertFound(
      await check(edited((files) => forge(files, () => note))),
      "checkpoints/30.txt 30 checkpoint_mismatch"
    )
  })
})

describe("erasure", () => {
  const erasedOutside = (pack: PackEditor, at: number, erasedAt?: string) => {
    const copy = chain.branch(whole)
    copy.eraseOutside(at, erasedAt ?? chain.event(whole).created_at)
    return changeLine(pack, EVENTS, at, () => copy.bodies[at - 1]!)
  }

  it("outside the service is named", async () => {
    const report = await check(edited((pack) => erasedOutside(pack, VICTIM).settle()))
    assertFound(report, `${EVENTS} ${VICTIM} content_mismatch`)
    assert.deepStrictEqual(sequencesOf(report), [VICTIM])
  })

  it("with a forged excuse is named at the event that it excuses", async () => {
    const excuse = chain.branch(whole)
    excuse.erase(VICTIM)
    const pack = edited((files) => {
      erasedOutside(files, VICTIM, excuse.event(excuse.length).created_at)
      files.edit("erasures.ndjson", (lines) => [...lines, excuse.bodies.at(-1)!]).settle()
    })
    assertFound(await check(pack), `erasures.ndjson ${VICTIM} content_mismatch`)
  })

  it("with a forged excuse in a place of the chain is named as well", async () => {
    const excuse = chain.branch(VICTIM + 4)
    excuse.erase(VICTIM)
    const pack = edited((files) => {
      erasedOutside(files, VICTIM, excuse.event(excuse.length).created_at)
      files.edit("erasures.ndjson", (lines) => [excuse.bodies.at(-1)!, ...lines]).settle()
    })
    assertFound(await check(pack), `erasures.ndjson ${VICTIM} content_mismatch`)
  })

  it("without its excuse is named", async () => {
    const pack = edited((files) => files.set("erasures.ndjson", "").settle())
    assertFound(await check(pack), `${EVENTS} ${ERASED} content_mismatch`)
  })

  it("at another time than the chain says is named", async () => {
    const pack = edited((files) =>
      changeLine(files, EVENTS, ERASED, (line) => changedAt(line, ["erased_at"])).settle()
    )
    assertFound(await check(pack), `${EVENTS} ${ERASED} content_mismatch`)
  })

  it("of a part of the details is named", async () => {
    const pack = edited((files) =>
      changeLine(files, EVENTS, VICTIM, (line) => line.replace(/,"email":"[^"]+"/, "")).settle()
    )
    assertFound(await check(pack), `${EVENTS} ${VICTIM} content_mismatch`)
  })
})

describe("files", () => {
  it("that were changed are named: verification.json", async () => {
    const pack = edited((files) =>
      files.json("verification.json", (report) => (report["events_checked"] = 7))
    )
    assertFound(
      await check(pack),
      "verification.json null file_mismatch",
      "verification.json null report_mismatch"
    )
  })

  for (const [name, value] of Object.entries({
    tenant_id: "globex",
    scheme: "alk-chain-v2",
    bounds: { from: "1970-01-01T00:00:00.000000Z", to: "2000-01-01T00:00:00.000000Z" },
    events_checked: 7,
    events_in_bounds: 7,
    first_sequence_number: 2,
    last_sequence_number: 7,
    head: null,
    erased_events: 0,
    verified_at: "2020-01-01T00:00:00.000000Z",
    valid: false
  })) {
    it(`that were changed contradict the rest: ${name} of verification.json`, async () => {
      const pack = edited((files) =>
        files.json("verification.json", (report) => (report[name] = value)).settle()
      )
      assertFound(await check(pack), "verification.json null report_mismatch")
    })
  }

  it("that say that the service found the chain broken are believed", async () => {
    const broken = {
      sequence_number: 5,
      event_id: "evt-5",
      reason: "content_mismatch",
      expected: "this",
      actual: "that"
    }
    const report = { valid: false, status: "broken", breaks: [broken], breaks_total: 1 } as const
    const zip = await new PackWorld(chain).pack({ report: report as never })
    const found = await verifiers.check(zip)
    assert.deepStrictEqual(problemsOf(found), ["verification.json 5 content_mismatch"])
  })

  const names = ["README.txt", "verification.json", EVENTS, LINKS, "erasures.ndjson", "verify.py"]
  for (const name of [...names, "manifest.sig", "keys/vkeys.txt", "checkpoints/30.txt"]) {
    it(`that were removed are named: ${name}`, async () => {
      assertFound(await check(edited((files) => files.remove(name))), `${name} null file_missing`)
    })
  }

  it("that were added are named", async () => {
    const added = edited((files) => files.set("autorun.exe", "MZ"))
    assertFound(await check(added), "autorun.exe null file_unexpected")
  })

  it("that are the sums must fit the files", async () => {
    const pack = edited((files) =>
      files.set("sha256sums.txt", files.text("sha256sums.txt").replace(/^[0-9a-f]{8}/, "00000000"))
    )
    assertFound(await check(pack), "sha256sums.txt null file_mismatch")
  })

  it("that are the manifest must be JSON and be signed", async () => {
    const torn = edited((files) => files.set("manifest.json", "{").sums())
    assertFound(await check(torn), "manifest.json null content_mismatch")
    const other = edited((files) =>
      files.json("manifest.json", (manifest) => (manifest["generated_at"] = "x")).sums()
    )
    assertFound(await check(other), "manifest.sig null signature_invalid")
  })
})

describe("what can't be read", () => {
  const cases: ReadonlyArray<readonly [string, () => Buffer]> = [
    ["something that is no ZIP", () => Buffer.from("not a zip at all, but long enough to look at")],
    ["a ZIP whose end is missing", () => original.subarray(0, original.length / 2)],
    ["a ZIP of other files", () => zipOf([["notes.txt", Buffer.from("hello")]])],
    [
      "a byte of the compressed data that was flipped",
      () => {
        const bytes = Buffer.from(original)
        const at = bytes.indexOf("events.ndjson") + 2_000
        bytes[at] = bytes[at]! ^ 1
        return bytes
      }
    ],
    [
      "a newer format",
      () =>
        edited((files) =>
          files.json("manifest.json", (manifest) => (manifest["format"] = "alk-evidence-pack-v9"))
        ).zip()
    ]
  ]
  for (const [name, make] of cases) {
    it(`is called unreadable: ${name}`, async () => {
      assert.strictEqual((await verifiers.check(make())).verdict, "unreadable")
    })
  }

  it("is called unreadable when a checkpoint that was given is of another chain", async () => {
    const kept = [checkpointOf(new TestChain("globex", 3)).note]
    assert.strictEqual((await verifiers.check(original, { kept })).verdict, "unreadable")
  })
})
