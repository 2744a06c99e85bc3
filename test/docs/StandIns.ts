/**
 * The blocks in which a program is not the real one, with the reason; what stands in for it checks
 * what the block gives it. Every other block of `sh` is run as it is. The only list of its kind.
 */
import type { Block } from "./Pages.ts"

/** Functions of the shell, by the program in whose place they are. */
const STAND_INS = {
  /** Reads the settings as a start does; of the benchmark it checks the options. */
  npm: `npm() {
    case "$*" in
      start) node test/docs/readSettings.ts ;;
      ci) test -f package-lock.json ;;
      test) grep -q '"test":' package.json ;;
      "run bench -- --"*) grep -q -- "\${4#--}" test/bench/Options.ts ;;
      *) return 1 ;;
    esac
  }`,
  /** Its settings are those of the program that is started beside it. */
  docker: `docker() { echo "$@" | grep -q -- "CLICKHOUSE_USER=alk -e CLICKHOUSE_PASSWORD=alk clickhouse/"; }`,
  /** Its flags are those that test/tlog has run. */
  go: `go() {
    local argument
    for argument in "$@"; do
      case "$argument" in
        --*) grep -q -- "\${argument%%=*}" test/support/Fsck.ts || return 1 ;;
      esac
    done
  }`,
  pip: `pip() { test -f "$2/pyproject.toml"; }`
} as const

type StandIn = keyof typeof STAND_INS

/** Page, beginning of the block, what does not run there, and why. */
const LIST: ReadonlyArray<
  readonly [page: string, beginning: string, program: StandIn, reason: string]
> = [
  ["README.md", "npm ci && npm start", "npm", "installs and serves; test/e2e/Npm.all.ts"],
  ["README.md", "npm ci && npm test", "npm", "installs, and runs tests"],
  ["CONTRIBUTING.md", "npm ci", "npm", "installs, and runs this test"],
  ["docs/start.md", "npm ci && npm start", "npm", "installs and serves; test/e2e/Npm.all.ts"],
  ["docs/operate.md", "ALK_ROLES=store", "npm", "serves; test/e2e/Roles.all.ts"],
  ["docs/operate.md", "set -a; . .data/processes.env", "npm", "serves; test/e2e/Roles.all.ts"],
  ["docs/operate.md", "CLICKHOUSE_DATABASE=", "npm", "serves; test/e2e/Mending.all.ts"],
  ["docs/operate.md", "docker run", "npm", "serves, against a server"],
  ["docs/operate.md", "docker run", "docker", "needs a container engine; test/containers"],
  ["docs/speed.md", "npm run bench", "npm", "takes minutes; test/bench/Bench.all.ts"],
  ["docs/send.md", "pip install", "pip", "downloads; test/clients/PythonFrameworks.all.ts"],
  ["docs/verify.md", "curl $B/.well-known", "go", "downloads a module; test/tlog/Fsck.all.ts"]
]

const isOf =
  ({ page, text }: Block) =>
  ([where, beginning]: (typeof LIST)[number]): boolean =>
    where === page && text.startsWith(beginning)

/** Lines before a block that put functions in the place of programs; they hold in that block only. */
export const standInsFor = (block: Block): ReadonlyArray<string> =>
  LIST.filter(isOf(block)).map(([, , program]) => STAND_INS[program])

/** The entries of the list that no block is meant by. */
export const unusedStandIns = (blocks: ReadonlyArray<Block>): ReadonlyArray<string> =>
  LIST.filter((entry) => !blocks.some((block) => isOf(block)(entry))).map(
    ([page, beginning]) => `${page}: ${beginning}`
  )

/** Files that the reasons name. */
export const filesOfReasons: ReadonlyArray<string> = LIST.flatMap(
  ([, , , reason]) => /test\/\S+$/.exec(reason) ?? []
)
