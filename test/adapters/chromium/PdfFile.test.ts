/** What is read from and written over in the files of Chromium, on hand-made ones. */
import { assert, describe, it } from "vitest"
import { anchorPages, normalizePdf } from "../../../src/adapters/chromium/PdfFile.ts"

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
    assert.deepStrictEqual([...pages].sort(), [["first", 1], ["inner", 2], ["the-last", 3]])
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
