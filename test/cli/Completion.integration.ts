/** Completion as the shells do it: bash by its own functions, zsh in a terminal, where there is one. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { completion } from "../../src/cli/commands/Completion.ts"
import { makeProgram } from "../../src/cli/Program.ts"

/** What bash offers for a line whose last word is being typed. */
const offered = (...words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const script = [
    completion("bash", makeProgram()),
    `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})`,
    `COMP_CWORD=${words.length - 1}`,
    "_alk",
    `printf '%s\\n' "\${COMPREPLY[@]}"`
  ].join("\n")
  const { status, stderr, stdout } = spawnSync("bash", ["-c", script], { encoding: "utf8" })
  assert.strictEqual(status, 0, stderr)
  assert.strictEqual(stderr, "")
  return stdout.split("\n").filter((line) => line !== "")
}

describe("completion in bash", () => {
  it("offers commands, those below them, and options", () => {
    assert.includeMembers([...offered("alk", "")], ["up", "send", "chain", "--help"])
    assert.deepStrictEqual(offered("alk", "ver"), ["verify"])
    assert.deepStrictEqual(offered("alk", "chain", "k"), ["keep"])
    assert.deepStrictEqual(offered("alk", "events", "--actor-"), ["--actor-type"])
    assert.deepStrictEqual(offered("alk", "export", "parq"), ["parquet"])
    assert.deepStrictEqual(offered("alk", "chain", "keep", "--con"), ["--context"])
  })

  it("offers files where a command takes one", () => {
    assert.include(offered("alk", "verify", "package.js"), "package.json")
  })
})

/**
 * A zsh in a terminal of its own, in which a line is typed and completed; each word that completion
 * adds is printed. Its arguments: what loads the completion, and the line.
 */
const ZSH = String.raw`
zmodload zsh/zpty
zpty shell zsh -f -i
say() { zpty -w shell "$1" }
say 'unsetopt zle_bracketed_paste prompt_cr prompt_sp; PROMPT='
say "$1"
say 'compadd() {
  if [[ ${"$"}{@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  local -a words; builtin compadd -A words "$@"; builtin compadd "$@"
  local word; for word in $words; do print -r -- "<word>$word</word>"; done
}'
say 'finish() { print "<end>"; exit }; comppostfuncs=(finish)'
say "bindkey '^I' complete-word; print '<rea''dy>'"
zpty -r shell seen '*<ready>*'
zpty -w -n shell "$2"$'\t'
zpty -r shell seen '*<end>*'
print -r -- "$seen"
`

const hasZsh = spawnSync("zsh", ["--version"]).status === 0
const folder = mkdtempSync(join(tmpdir(), "alk-completion-"))
const file = join(folder, "_alk")
writeFileSync(file, completion("zsh", makeProgram()))
afterAll(() => rmSync(folder, { recursive: true }))

const BEGIN = "autoload -Uz compinit; compinit -u -D"
const LOADS = {
  "that is sourced": `${BEGIN}; source ${file}`,
  "that is found in fpath": `fpath=(${folder} $fpath); ${BEGIN}`
} as const

describe("completion in zsh", () => {
  for (const [how, load] of Object.entries(LOADS)) {
    it(`${how} offers commands, those below them, options and files`, (context) => {
      if (!hasZsh) context.skip("there is no zsh on this machine")
      const offeredFor = (line: string): ReadonlyArray<string> => {
        const { stderr, stdout } = spawnSync("zsh", ["-fc", ZSH, "zsh", load, line], {
          encoding: "utf8"
        })
        assert.strictEqual(stderr, "")
        return [...stdout.matchAll(/<word>(.*?)<\/word>/g)].map(([, word]) => word!)
      }
      assert.includeMembers([...offeredFor("alk ")], ["up", "send", "chain", "--help"])
      assert.deepStrictEqual(offeredFor("alk ver"), ["verify"])
      assert.deepStrictEqual(offeredFor("alk chain k"), ["keep"])
      assert.deepStrictEqual(offeredFor("alk events --actor-"), ["--actor-type"])
      assert.deepStrictEqual(offeredFor("alk chain keep --con"), ["--context"])
      assert.deepStrictEqual(offeredFor("alk verify package.js"), ["package.json"])
    })
  }
})
