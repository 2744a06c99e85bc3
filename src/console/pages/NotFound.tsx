/** An address that no page has. */
export const NotFound = () => (
  <>
    <h1>There is no such page</h1>
    <p>
      The address may be mistyped, or of a newer version. <a href="/">To the overview</a>
    </p>
  </>
)
