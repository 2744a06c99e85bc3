/** Every verifier over one pack: the three that lie in it, run as auditors do, and our own. */
import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { assert } from "vitest"
import { verifierFiles } from "../../../src/adapters/esbuild/PackVerifiersBundle.ts"
import { verifyPack } from "../../../src/cli/VerifyPack.ts"
import type { PackReport, UnreadablePack } from "../../../src/exports/checker/Report.ts"
import { packAssets } from "../../../src/exports/pack/PackAssets.ts"
import { VerifierPage } from "./VerifierPage.ts"

export type Report = PackReport | UnreadablePack

export interface Run {
  readonly report: Report
  readonly exitCode: number
}

export interface Given {
  /** C2SP key, or the path of a file with keys. */
  readonly key?: string
  /** Signed checkpoints. */
  readonly kept?: ReadonlyArray<string>
}

const exitCodes = { authentic: 0, consistent: 0, tampered: 1, unreadable: 2 } as const

const execute = (command: string, args: ReadonlyArray<string>): Promise<Run> =>
  new Promise((resolve, reject) => {
    const options = { maxBuffer: 64 * 1_048_576 }
    execFile(command, [...args], options, (error, stdout, stderr) => {
      try {
        const exitCode = error === null ? 0 : Number(error.code)
        resolve({ report: JSON.parse(stdout) as Report, exitCode })
      } catch {
        reject(new Error(`${command} ${args.join(" ")}: ${stdout}${stderr}`, { cause: error }))
      }
    })
  })

/** `alk verify` in this process. */
export const alkVerify = async (args: ReadonlyArray<string>): Promise<Run & { text: string }> => {
  const { exitCode, text } = await Effect.runPromise(verifyPack(args))
  const report = (args.includes("--json") ? JSON.parse(text) : undefined) as Report
  return { report, exitCode, text }
}

/** What a person pastes into the page. */
export const keyText = (key: string): string => (existsSync(key) ? readFileSync(key, "utf8") : key)

export class Verifiers {
  readonly folder: string
  readonly page: VerifierPage

  private constructor(folder: string, page: VerifierPage) {
    this.folder = folder
    this.page = page
  }

  static async open(): Promise<Verifiers> {
    const folder = mkdtempSync(join(tmpdir(), "alk-pack-"))
    for (const { content, name } of packAssets(await verifierFiles())) {
      if (name.startsWith("verify.")) writeFileSync(join(folder, name), content)
    }
    return new Verifiers(folder, await VerifierPage.open(join(folder, "verify.html")))
  }

  async close(): Promise<void> {
    await this.page.close()
    rmSync(this.folder, { recursive: true, force: true })
  }

  file(name: string, content: string | Buffer): string {
    const path = join(this.folder, name)
    writeFileSync(path, content)
    return path
  }

  node(args: ReadonlyArray<string>): Promise<Run> {
    return execute("node", [join(this.folder, "verify.mjs"), ...args])
  }

  python(args: ReadonlyArray<string>): Promise<Run> {
    return execute("python3", [join(this.folder, "verify.py"), ...args])
  }

  /** The report of all four, which have to agree in every word. */
  async check(zip: Buffer, { kept = [], key }: Given = {}): Promise<Report> {
    const path = this.file("pack.zip", zip)
    const keptPaths = kept.map((note, at) => this.file(`kept-${at}.txt`, note))
    const args = [
      path,
      "--json",
      ...(key === undefined ? [] : ["--public-key", key]),
      ...keptPaths.flatMap((kept) => ["--checkpoint", kept])
    ]
    const [own, node, python] = await Promise.all([
      alkVerify(args),
      this.node(args),
      this.python(args)
    ])
    const page = await this.page.check(path, {
      kept: keptPaths,
      ...(key === undefined ? {} : { key: keyText(key) })
    })
    // Programs call a checkpoint by its path, the page can only know its name.
    const unnamed = (report: Report): Report =>
      JSON.parse(JSON.stringify(report).replaceAll(`${this.folder}/`, "")) as Report
    const wanted = unnamed(own.report)
    const isVerdict = own.report.verdict !== "unreadable"
    for (const [name, report] of [
      ["verify.mjs", node.report],
      ["verify.py", python.report],
      ["verify.html", page]
    ] as const) {
      if (isVerdict) assert.deepStrictEqual(unnamed(report), wanted, name)
      else assert.strictEqual(report.verdict, "unreadable", name)
    }
    for (const { exitCode, report } of [own, node, python]) {
      assert.strictEqual(exitCode, exitCodes[report.verdict])
    }
    return wanted
  }
}

/** Problems as `file sequence reason`. */
export const problemsOf = ({ problems }: Report): ReadonlyArray<string> =>
  problems.map(({ file, reason, sequence_number }) => `${file} ${sequence_number} ${reason}`)
