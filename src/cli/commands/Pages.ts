/** Lists of the service, read to their end or to a limit. */

/** Entries of one page: the largest that the service gives. */
const PAGE_SIZE = 1_000

/** What asks for one page. */
export type AskPage<Row> = (query: {
  readonly page: number
  readonly page_size: number
}) => Promise<ReadonlyArray<Row>>

/** All rows. */
export const allPages = async <Row>(ask: AskPage<Row>): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (let page = 1; ; page++) {
    const more = await ask({ page, page_size: PAGE_SIZE })
    rows.push(...more)
    if (more.length < PAGE_SIZE) return rows
  }
}

/** The first rows, and no page after them; 0 for all. */
export async function* limited<Row>(
  rows: AsyncIterable<Row>,
  limit: number
): AsyncGenerator<Row, void> {
  let given = 0
  for await (const row of rows) {
    yield row
    given += 1
    if (given === limit) return
  }
}
