/** The guard of the tier `unit`: a test that starts a process fails, for it belongs to another tier. */
import childProcess from "node:child_process"
import { syncBuiltinESMExports } from "node:module"

const refuse = (): never => {
  throw new Error("a unit test starts no process: call the file .integration.ts or .e2e.ts")
}

// exec, execFile, fork and spawn all go through this method.
Object.assign(childProcess.ChildProcess.prototype, { spawn: refuse })
Object.assign(childProcess, { execFileSync: refuse, execSync: refuse, spawnSync: refuse })
syncBuiltinESMExports()
