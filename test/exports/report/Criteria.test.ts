/** The mapping of actions to criteria: its patterns, its default and what is refused in a file. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Result } from "effect"
import { afterAll, assert, describe, it } from "vitest"
import { isActionPattern, matcherOf } from "../../../src/exports/report/ActionPattern.ts"
import { countedBy, parseMapping } from "../../../src/exports/report/Criteria.ts"
import { defaultMapping } from "../../../src/exports/report/DefaultMapping.ts"
import { LOGO_BYTES_MAX, readReportSettings } from "../../../src/exports/report/ReportSettings.ts"

const criteriaOf = (action: string, outcome: "success" | "failure" | "error" = "success") =>
  defaultMapping.criteria
    .filter((criterion) => countedBy(criterion)(action).includes(outcome))
    .map(({ id }) => id)

describe("patterns of actions", () => {
  it("stand for a segment with one star and for several with two, whatever the case", () => {
    const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>, ReadonlyArray<string>]> = [
      [
        "user.login",
        ["user.login", "User.Login"],
        ["user.login.failed", "user.logins", "x.user.login"]
      ],
      ["user.login*", ["user.login", "user.login-failed"], ["user.login.failed", "user.log"]],
      ["*.login", ["user.login"], ["a.user.login"]],
      ["**.login", ["user.login", "a.user.login"], ["user.login.b"]],
      [
        "firewall.**",
        ["firewall.update", "firewall.rule.update"],
        ["firewall", "my.firewall.update"]
      ],
      ["**.role.**", ["user.role.add", "a.b.role.c.d"], ["role.add", "user.role"]],
      ["**", ["a.b", "a.b.c.d"], [""]]
    ]
    for (const [pattern, meant, others] of cases) {
      const matches = matcherOf([pattern])
      for (const action of meant) assert.isTrue(matches(action), `${pattern} ${action}`)
      for (const action of others) assert.isFalse(matches(action), `${pattern} ${action}`)
    }
    assert.isFalse(matcherOf([])("a.b"))
  })

  it("have a form", () => {
    for (const text of ["a.b", "**", "**.a*", "a-*_b.c", "*"])
      assert.isTrue(isActionPattern(text), text)
    const wrong = [
      "",
      "A.b",
      "a..b",
      ".a",
      "a.",
      "a**",
      "**a.b",
      "***",
      "a b",
      "(a)",
      "*.*.*.*",
      "é"
    ]
    for (const text of [...wrong, `a.${"b".repeat(130)}`])
      assert.isFalse(isActionPattern(text), text)
  })
})

describe("the default mapping", () => {
  it("is what an auditor expects of common actions", () => {
    const cases: Readonly<Record<string, ReadonlyArray<string>>> = {
      "user.login": ["CC6.1"],
      "user.login-failed": ["CC6.1"],
      "user.mfa.enroll": ["CC6.1"],
      "key.rotate": ["CC6.1"],
      "user.create": ["CC6.2"],
      "user.deleted": ["CC6.2"],
      "api-key.create": ["CC6.2"],
      "key.revoke": ["CC6.2", "CC7.4"],
      "user.role-add": ["CC6.3"],
      "user.role.add": ["CC6.3"],
      "permission.change": ["CC6.3"],
      "alk.event.erased": ["CC6.5"],
      "firewall.rule.update": ["CC6.6", "CC7.1"],
      "export.download": ["CC6.7"],
      "document.share": ["CC6.7"],
      "config.update": ["CC7.1"],
      "alert.raised": ["CC7.2"],
      "incident.opened": ["CC7.3", "CC7.4"],
      "backup.restore": ["CC7.5"],
      "deploy.approve": ["CC8.1"],
      "service.deploy": ["CC8.1"],
      "pull-request.merge": ["CC8.1"],
      "config.change.approve": ["CC7.1", "CC8.1"],
      "payment.approve": [],
      "payment.transfer": [],
      "payment.release": [],
      "document.read": [],
      "contact.merge": []
    }
    for (const [action, ids] of Object.entries(cases)) {
      assert.deepStrictEqual(criteriaOf(action), ids, action)
    }
  })

  it("counts every refused and failed action as something to watch", () => {
    assert.deepStrictEqual(criteriaOf("payment.approve", "failure"), ["CC7.2"])
    assert.deepStrictEqual(criteriaOf("user.login", "error"), ["CC6.1", "CC7.2"])
  })

  it("maps each criterion from CC6.1 to CC8.1 once, and is the published file", () => {
    const of = (group: string, last: number) =>
      Array.from({ length: last }, (_, index) => `${group}.${index + 1}`)
    assert.deepStrictEqual(
      defaultMapping.criteria.map(({ id }) => id),
      [...of("CC6", 8), ...of("CC7", 5), "CC8.1"]
    )
    const { $schema, ...published } = JSON.parse(readFileSync("schemas/criteria.json", "utf8"))
    assert.deepStrictEqual(published, JSON.parse(JSON.stringify(defaultMapping)))
    assert.strictEqual($schema, "criteria.schema.json")
    assert.isTrue(Result.isSuccess(parseMapping(readFileSync("schemas/criteria.json", "utf8"))))
  })
})

describe("the files of a report's settings", () => {
  const folder = mkdtempSync(join(tmpdir(), "alk-criteria-"))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const none = { criteriaFile: undefined, organisation: undefined, logoFile: undefined }
  const file = (name: string, content: string | Buffer): string => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const refusal = async (config: Partial<typeof none> | Record<string, string>) => {
    const read = Effect.flip(readReportSettings({ ...none, ...config }))
    return (await Effect.runPromise(read)).message
  }
  const criterion = { id: "CC6.1", topic: "t", evidence: "e", elsewhere: "w" }
  const mapping = (rules: unknown, changed = {}) =>
    JSON.stringify({
      criteria: [{ ...criterion, rules, ...changed }],
      privileged_actions: ["a.b"]
    })

  it("replace the mapping, name the organisation and bring a logo", async () => {
    const png = Buffer.from("89504e470d0a1a0a0000", "hex")
    const read = readReportSettings({
      criteriaFile: file("own.json", mapping([{ actions: ["x.y"], outcomes: ["error"] }])),
      organisation: "Acme",
      logoFile: file("logo.png", png)
    })
    const settings = await Effect.runPromise(read)
    assert.strictEqual(settings.mapping.criteria.length, 1)
    assert.deepStrictEqual(countedBy(settings.mapping.criteria[0]!)("x.y"), ["error"])
    assert.strictEqual(settings.organisation, "Acme")
    assert.deepStrictEqual(settings.logo, { mediaType: "image/png", bytes: png })
    const jpeg = { ...none, logoFile: file("logo.jpg", Buffer.from("ffd8ffe0", "hex")) }
    const { logo } = await Effect.runPromise(readReportSettings(jpeg))
    assert.strictEqual(logo?.mediaType, "image/jpeg")
  })

  it("refuse a mapping that names an unknown criterion or a bad pattern, with the field", async () => {
    const cases: ReadonlyArray<readonly [string, RegExp]> = [
      [mapping([], { id: "CC9.9" }), /such as CC6\.1\n {2}at \["criteria"\]\[0\]\["id"\]/],
      [
        mapping([{ actions: ["a..b"] }]),
        /pattern of actions[^]*\["rules"\]\[0\]\["actions"\]\[0\]/
      ],
      [mapping([{ actions: ["(a+)+"] }]), /\["actions"\]\[0\]/],
      [mapping([{ actions: [] }]), /\["actions"\]/],
      [mapping([{ actions: ["a.b"], outcomes: ["maybe"] }]), /\["outcomes"\]\[0\]/],
      [mapping([], { words: ["login"] }), /\["words"\]/],
      ['{"criteria":[],"privileged_actions":["a.b"]}', /\["criteria"\]/],
      [`{"criteria":[${JSON.stringify({ ...criterion, rules: [] })}]}`, /privileged_actions/],
      ["{", /is no JSON/]
    ]
    for (const [content, expected] of cases) {
      const message = await refusal({ criteriaFile: file("wrong.json", content) })
      assert.match(message, /^ALK_CRITERIA_FILE: .*wrong\.json /)
      assert.match(message, expected)
    }
    const twice = JSON.parse(mapping([])) as { criteria: Array<unknown> }
    twice.criteria.push(twice.criteria[0])
    const message = await refusal({ criteriaFile: file("wrong.json", JSON.stringify(twice)) })
    assert.match(message, /each criterion once/)
  })

  it("refuse what is not there, another kind of picture and one that is too large", async () => {
    assert.match(await refusal({ criteriaFile: join(folder, "absent") }), /absent is not there/)
    const svg = await refusal({ logoFile: file("a.svg", "<svg/>") })
    assert.match(svg, /^ALK_REPORT_LOGO_FILE: .*a\.svg is neither PNG nor JPEG/)
    const large = await refusal({ logoFile: file("large.png", Buffer.alloc(LOGO_BYTES_MAX + 1)) })
    assert.match(large, /has 524289 bytes; at most 524288 are allowed/)
  })
})
