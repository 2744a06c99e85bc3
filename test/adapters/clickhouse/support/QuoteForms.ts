/**
 * Forms that ClickHouse, or another engine of its kind, reads as a comment or as a text, some of them
 * only at the first look. What is inside stands in place of `□`.
 */

const comments = [
  "//□",
  "///□",
  "--□",
  "# □",
  "#!□",
  "#□",
  "#\t□",
  "/*□*/",
  "/*□",
  "/*/*□*/*/",
  "\u2212-□",
  "\u2014□"
]

const texts = [
  "$$□$$",
  "$x$□$x$",
  "$x$□",
  "$ x $□$ x $",
  "$é$□$é$",
  "\u2018□\u2019",
  "\u201c□\u201d",
  "«□»",
  "\uff07□\uff07",
  "´□´",
  "'□",
  '"□',
  "`□",
  "'\\□",
  "'\\x□'",
  "'\\xg1□'",
  "'\0□'",
  '"\\□',
  "`\\□",
  "x'4g□'",
  "x'4□",
  "b'2□'",
  "N'□'",
  "E'□'",
  "1'□'",
  "abx'41'□'",
  'a"□"',
  "a`□`"
]

const others = [
  ..."@&^~|!\\#$".split("").map((sign) => `${sign}□`),
  ..."\0\v\f\x1b\u00a0\u3000\u2028\ufeffé".split("").map((sign) => `${sign}□`),
  "@@x□",
  "\\N□",
  "1a□",
  "1$□",
  "a$□",
  "a$$□"
]

export const quoteForms: ReadonlyArray<string> = [...comments, ...texts, ...others]

/** A call, with a quote before and behind it, each in one of the forms. */
export const hiddenCalls = (call: string, quote = "'"): ReadonlyArray<string> =>
  quoteForms.flatMap((before) =>
    quoteForms.map((behind) => {
      const [first, last] = [before, behind].map((form) => form.replaceAll("□", quote))
      return `SELECT 1 ${first}\n, ${call} ${last}\n FORMAT TSV`
    })
  )
