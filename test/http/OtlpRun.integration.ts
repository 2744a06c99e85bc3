/** Real exporters against the API over the doubles: what the whole service has to do as well. */
import { afterAll, beforeAll } from "vitest"
import { otlpBlackBox } from "../support/OtlpBlackBox.ts"
import { OTHER_KEY } from "./support/Doubles.ts"
import { TestApi } from "./support/TestApi.ts"

let api: TestApi
beforeAll(async () => {
  api = await TestApi.start()
})
afterAll(() => api.stop())

otlpBlackBox(() => ({ url: api.url, key: OTHER_KEY }))
