import { TestApi } from "./support/TestApi.ts"
import chromium from "@sparticuz/chromium"
import { chromium as pw } from "playwright-core"
const api = await TestApi.start()
const browser = await pw.launch({ executablePath: await chromium.executablePath(), args: chromium.args, headless: true })
const page = await browser.newPage({ viewport: { width: 1300, height: 900 } })
page.on("request", (r) => { if (!r.url().startsWith("data:")) console.log("REQ", r.url().slice(0, 120)) })
page.on("console", (m) => m.type() !== "info" && console.log("CONSOLE", m.type(), m.text().slice(0, 300)))
page.on("pageerror", (e) => console.log("ERR", String(e).slice(0, 300)))
await page.goto(`${api.url}/docs`)
await page.waitForTimeout(2500)
await page.getByText("Record up to 1000 events").first().click()
await page.waitForTimeout(2500)
await page.screenshot({ path: "/tmp/alk/http/docs.png" })
await browser.close()
await api.stop()
