/** `alk completion`: scripts for bash and zsh, made of the declared commands and options. */
import type { Command } from "commander"
import { usage } from "../Failure.ts"

const isShown = (name: string): boolean => /^[\w-]+$/.test(name)

const optionsOf = (command: Command): ReadonlyArray<string> => [
  ...command.options.map(({ long }) => long ?? "").filter(isShown),
  "--help"
]

const choicesOf = (command: Command): ReadonlyArray<string> =>
  command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])

/** Words after each command: those of the commands below it or of its argument, and its options. */
const wordsOf = (command: Command): string => {
  const below = command.commands.map((one) => one.name())
  return [...below, ...choicesOf(command), ...optionsOf(command)].join(" ")
}

/** Commands with the words after them; those below another one first, by both names. */
const wordsByPath = (program: Command): ReadonlyArray<readonly [path: string, words: string]> =>
  program.commands.flatMap((command) => [
    ...command.commands.map(
      (below) => [`${command.name()} ${below.name()}`, wordsOf(below)] as const
    ),
    [command.name(), wordsOf(command)] as const
  ])

/** Branches of a `case` over the words between the program and the cursor, each with a space after it. */
const branches = (program: Command, line: (words: string) => string): string =>
  wordsByPath(program)
    .map(([path, words]) => `    "${path} "*) ${line(words)} ;;\n`)
    .join("")

const bash = (
  program: Command
): string => `# completion of alk for bash: source <(alk completion bash)
_alk() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words=""
  case "\${COMP_WORDS[*]:1:COMP_CWORD-1} " in
    " ") words="${wordsOf(program)}" ;;
${branches(program, (words) => `words="${words}"`)}  esac
  mapfile -t COMPREPLY < <(
    compgen -W "$words" -- "$current"
    [[ "$current" == -* || "$COMP_CWORD" -eq 1 ]] || compgen -f -- "$current"
  )
}
complete -o filenames -F _alk alk
`

const zsh = (program: Command): string => `#compdef alk
# completion of alk for zsh: source <(alk completion zsh), after compinit; or as a file _alk in fpath
_alk() {
  local -a candidates
  case "\${(j: :)words[2,CURRENT-1]} " in
    " ") candidates=(${wordsOf(program)}) ;;
${branches(program, (words) => `candidates=(${words})`)}  esac
  compadd -- $candidates
  [[ "$PREFIX" == -* ]] || (( CURRENT == 2 )) || _files
}
if [[ "\${funcstack[1]}" == _alk ]]; then _alk "$@"; else compdef _alk alk; fi
`

/** The script of a shell. Throws CommandFailure. */
export const completion = (shell: string, program: Command): string => {
  if (shell === "bash") return bash(program)
  if (shell === "zsh") return zsh(program)
  throw usage(`shell: must be bash or zsh, is ${JSON.stringify(shell)}`)
}
