import { assert, describe, it } from "vitest"
import { mergedMetrics } from "../../../src/http/server/MergedMetrics.ts"

describe("mergedMetrics", () => {
  it("says each family once, and of each sample whose it is", () => {
    const first = `# HELP a_total What a is.
# TYPE a_total counter
a_total{route="/x y",status="200"} 1
# HELP b B.
# TYPE b histogram
b_bucket{le="+Inf"} 2
b_count 2
`
    const second = `# HELP b B.
# TYPE b histogram
b_count 3
# HELP c C.
# TYPE c gauge
c{} 4
# HELP a_total What a is.
# TYPE a_total counter
a_total{route="/x y",status="200"} 5
`
    assert.strictEqual(
      mergedMetrics([
        { worker: 0, text: first },
        { worker: 2, text: second }
      ]),
      `# HELP a_total What a is.
# TYPE a_total counter
a_total{worker="0",route="/x y",status="200"} 1
a_total{worker="2",route="/x y",status="200"} 5
# HELP b B.
# TYPE b histogram
b_bucket{worker="0",le="+Inf"} 2
b_count{worker="0"} 2
b_count{worker="2"} 3
# HELP c C.
# TYPE c gauge
c{worker="2"} 4
`
    )
  })
})
