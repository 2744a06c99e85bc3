/**
 * Loaded before a program: kills it, as kill -9 would, at the call KILL_AT of those that change files
 * below KILL_BELOW, before it is made.
 */
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"

const below = process.env.KILL_BELOW ?? ""
const at = Number(process.env.KILL_AT)
/** Names of the files that are open. */
const names = new Map()
let calls = 0

const count = (path) => {
  if (!String(path).startsWith(below)) return
  calls += 1
  if (calls === at) process.kill(process.pid, "SIGKILL")
}

const original = { ...fs }
for (const name of ["renameSync", "rmSync"]) {
  fs[name] = (path, ...rest) => {
    count(path)
    return original[name](path, ...rest)
  }
}
for (const name of ["writeSync", "fsyncSync", "futimesSync"]) {
  fs[name] = (descriptor, ...rest) => {
    count(names.get(descriptor) ?? "")
    return original[name](descriptor, ...rest)
  }
}
fs.openSync = (path, flags, ...rest) => {
  if (flags === "w") count(path)
  const descriptor = original.openSync(path, flags, ...rest)
  names.set(descriptor, String(path))
  return descriptor
}
fs.closeSync = (descriptor) => {
  names.delete(descriptor)
  return original.closeSync(descriptor)
}
syncBuiltinESMExports()
