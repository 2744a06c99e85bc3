/** `npm run bench:accept`: what accept costs, alone; `npm run bench -- --only accept` has it too. */
import { acceptCosts } from "./harness/AcceptCost.ts"

for (const { bytes, micros, name, path } of acceptCosts()) {
  process.stdout.write(`${name} (${bytes} bytes), ${path}: ${micros.toFixed(1)} µs\n`)
}
