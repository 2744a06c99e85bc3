/** Real exporters against the API over the doubles: what the whole service has to do as well. */
import { afterAll, beforeAll } from "vitest"
import { freePort } from "../support/FreePort.ts"
import { otlpBlackBox } from "../support/OtlpBlackBox.ts"
import { recordedBlackBox } from "../support/RecordedBlackBox.ts"
import { OTHER_KEY } from "./support/Doubles.ts"
import { TestApi } from "./support/TestApi.ts"

let api: TestApi
let grpcPort: number
beforeAll(async () => {
  grpcPort = await freePort()
  api = await TestApi.start({ otlpGrpcPort: grpcPort })
})
afterAll(() => api.stop())

otlpBlackBox(() => ({
  url: api.url,
  grpcUrl: `http://127.0.0.1:${grpcPort}`,
  key: OTHER_KEY
}))
// Requests have at most 1 MiB here.
recordedBlackBox(() => ({ url: api.url, key: OTHER_KEY }), 12_000)
