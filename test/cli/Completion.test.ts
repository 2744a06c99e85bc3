/** The scripts of `alk completion`; that bash takes them, the end-to-end test shows. */
import { assert, describe, it } from "vitest"
import { completion } from "../../src/cli/commands/Completion.ts"
import { exportKinds } from "../../src/cli/commands/Export.ts"
import { EXPORT_KINDS } from "../../src/cli/declarations/Evidence.ts"
import { makeProgram } from "../../src/cli/Program.ts"

describe("completion", () => {
  for (const shell of ["bash", "zsh"]) {
    it(`of ${shell} has every command and every option`, () => {
      const program = makeProgram()
      const script = completion(shell, program)
      for (const command of program.commands.flatMap((one) => [one, ...one.commands])) {
        assert.include(script, command.name())
        for (const { long } of command.options) assert.include(script, long!)
      }
    })
  }

  it("proposes the kinds of files that can be exported, all of those that there are", () => {
    const kinds = EXPORT_KINDS.join(" ")
    for (const shell of ["bash", "zsh"]) {
      assert.match(completion(shell, makeProgram()), new RegExp(`"export "\\*\\).*${kinds}`))
    }
    assert.sameMembers([...EXPORT_KINDS], [...exportKinds])
  })

  it("of another shell is refused", () => {
    assert.throws(() => completion("fish", makeProgram()), /shell: must be bash or zsh/)
  })
})
