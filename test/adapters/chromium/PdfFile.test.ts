/** What is read from and written over in the files of Chromium, on hand-made ones. */
import { assert, describe, it } from "vitest"
import { anchorPages, attachFiles, normalizePdf } from "../../../src/adapters/chromium/PdfFile.ts"
import { readPdf } from "../../support/PdfReader.ts"

const stream =
  "/CreationDate (D:19990101000000) (node00000099) 7 0 obj\n<</x [9 0 R /XYZ 0 0 0]>>\nendobj"

const file = (nodes: ReadonlyArray<string>, date: string) =>
  Buffer.from(
    [
      "%PDF-1.4",
      `1 0 obj\n<</CreationDate (D:${date}+00'00')\n/ModDate (D:${date}+00'00')>>\nendobj`,
      `2 0 obj\n<</Filter /FlateDecode\n/Length ${stream.length}>> stream`,
      `${stream}\nendstream\nendobj`,
      ...["3", "4", "9"].map((id) => `${id} 0 obj\n<</Type /Page>>\nendobj`),
      "5 0 obj\n<</Type /Pages\n/Kids [9 0 R]>>\nendobj",
      "6 0 obj\n<</Type /Pages\n/Count 3\n/Kids [3 0 R 5 0 R 4 0 R]>>\nendobj",
      "7 0 obj\n<</first [3 0 R /XYZ 6 826.1 0]",
      "/the-last [4 0 R /XYZ 6 826.1 0]\n/inner [9 0 R /XYZ 6 1 0]>>\nendobj",
      `8 0 obj\n<</Names [${nodes.map((node) => `(node${node}) 3 0 R`).join(" ")}]>>\nendobj`,
      "10 0 obj\n<</Type /Catalog\n/Pages 6 0 R\n/Dests 7 0 R>>\nendobj"
    ].join("\n"),
    "latin1"
  )

describe("anchorPages", () => {
  it("finds the pages of anchors through nested page trees", () => {
    const pages = anchorPages(file(["00000001"], "20260101000000"))
    assert.deepStrictEqual([...pages].sort(), [
      ["first", 1],
      ["inner", 2],
      ["the-last", 3]
    ])
  })

  it("finds none in what is no PDF", () => {
    assert.strictEqual(anchorPages(Buffer.from("nothing")).size, 0)
  })
})

describe("normalizePdf", () => {
  const at = "2026-11-21T10:00:01.500000Z"

  it("makes files equal that differ only in time and in numbers of elements", () => {
    const one = normalizePdf(file(["00000014", "00000017"], "20260101000000"), at)
    const other = normalizePdf(file(["00000214", "00000317"], "20270101000000"), at)
    assert.isTrue(one.equals(other))
    assert.include(one.toString("latin1"), "/CreationDate (D:20261121100001+00'00')")
    assert.include(one.toString("latin1"), "(node00000000) 3 0 R (node00000001) 3 0 R")
  })

  it("keeps the length, the rest, and the inside of streams", () => {
    const before = file(["00000014"], "20260101000000")
    const after = normalizePdf(Buffer.from(before), at)
    assert.strictEqual(after.length, before.length)
    assert.include(after.toString("latin1"), stream)
  })
})

/** The smallest PDF with one page, its table of offsets right. */
const smallPdf = (): Buffer => {
  const objects = [
    "<</Title (small)>>",
    "<</Type /Catalog\n/Pages 3 0 R\n/MarkInfo <</Type /MarkInfo\n/Marked true>>\n/Lang (en)>>",
    "<</Type /Pages\n/Count 1\n/Kids [4 0 R]>>",
    "<</Type /Page\n/Parent 3 0 R\n/MediaBox [0 0 100 100]>>"
  ]
  let text = "%PDF-1.4\n"
  const places = objects.map((object, index) => {
    const at = text.length
    text += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(at).padStart(10, "0")} 00000 n \n`
  })
  const table = text.length
  text += `xref\n0 5\n0000000000 65535 f \n${places.join("")}`
  text += `trailer\n<</Size 5\n/Root 2 0 R\n/Info 1 0 R>>\nstartxref\n${table}\n%%EOF\n`
  return Buffer.from(text, "latin1")
}

describe("attachFiles", () => {
  const at = "2026-11-21T10:00:01.500000Z"
  const attachment = (name: string, text: string) => ({
    name,
    mediaType: "application/json",
    description: "What was found",
    bytes: Buffer.from(text)
  })

  it("adds files that another reader finds, and leaves the bytes so far as they are", async () => {
    const pdf = smallPdf()
    const hostile = "endstream\nendobj\ntrailer\n<</Size 1>>\nstartxref\n0\n%%EOF\n季"
    const files = [attachment("b.json", hostile), attachment("a.json", "{}")]
    const attached = attachFiles(pdf, files, at)
    assert.isTrue(attached.subarray(0, pdf.length).equals(pdf))
    const read = await readPdf(attached)
    assert.deepStrictEqual(
      [...read.attachments],
      [
        ["a.json", "{}"],
        ["b.json", hostile]
      ]
    )
    const text = attached.toString("latin1")
    const table = text.slice(Number(/startxref\n(\d+)\n%%EOF\n$/.exec(text)![1]))
    const places = [...table.matchAll(/^(\d+) 1\n(\d{10}) 00000 n $/gm)]
    assert.deepStrictEqual(
      places.map(([, id]) => id),
      ["2", "5", "6", "7", "8"]
    )
    for (const [, id, place] of places) {
      assert.isTrue(text.startsWith(`${id} 0 obj\n<<`, Number(place)), id)
    }
    assert.deepStrictEqual([read.pages.length, read.title, read.tagged], [1, "small", true])
    assert.isTrue(attachFiles(smallPdf(), files.toReversed(), at).equals(attached))
  })

  it("gives a PDF without attachments back as it is", () => {
    const pdf = smallPdf()
    assert.strictEqual(attachFiles(pdf, [], at), pdf)
  })

  it("refuses a PDF of another form and names that would need an escape", () => {
    const one = [attachment("a.json", "{}")]
    assert.throws(() => attachFiles(Buffer.from("nothing"), one, at), /does not end as Chromium's/)
    assert.throws(() => attachFiles(attachFiles(smallPdf(), one, at), one, at), /does not end/)
    for (const name of ["a(b", "", "../a", "ä"]) {
      assert.throws(() => attachFiles(smallPdf(), [attachment(name, "")], at), /can't be attached/)
    }
  })
})
