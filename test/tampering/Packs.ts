/** The evidence pack of a tenant that was tampered with, as `alk verify` and the report see it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Stream } from "effect"
import { layerArchive } from "../../src/adapters/archive/ArchiveZip.ts"
import { layerPackVerifiers } from "../../src/adapters/esbuild/PackVerifiersBundle.ts"
import { verifyPack } from "../../src/cli/VerifyPack.ts"
import { emptyFilter } from "../../src/domain/events/EventFilter.ts"
import { EvidenceSeal } from "../../src/exports/EvidenceSeal.ts"
import { openScope } from "../../src/exports/ExportScope.ts"
import { evidencePack } from "../../src/exports/pack/EvidencePack.ts"
import { layerStoredTraceExport } from "../../src/exports/pack/TraceExport.ts"
import { verdictOf } from "../../src/exports/report/Verdict.ts"
import { CheckpointStore } from "../../src/ports/CheckpointStore.ts"
import { HashTree } from "../../src/ports/HashTree.ts"
import { checkpointSigner } from "../support/Signer.ts"

const { serviceName, signer } = checkpointSigner

/** Signs as the service does, and takes the checkpoints that there are. */
const layerSeal = Layer.effect(
  EvidenceSeal,
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const { nodes } = yield* HashTree
    return EvidenceSeal.of({
      ready: Effect.void,
      sign: (text) => Effect.sync(() => signer.sign(text)),
      keys: Effect.succeed([{ vkey: signer.vkey }]),
      signers: () => Effect.succeed({ handOvers: [], signer: signer.vkey }),
      latest: store.latest,
      earlier: (tree, beforeSize, limit) => store.list(tree, { beforeSize, limit }),
      nodes
    })
  })
)

const packOf = Effect.fnUntraced(
  function* (tenantId: string) {
    const scope = yield* openScope({ tenantId, filter: emptyFilter })
    const bytes = yield* evidencePack(scope, { serviceName, pdf: undefined, deduplicate: false })
    return { zip: Buffer.concat(yield* Stream.runCollect(bytes)), scope }
  },
  Effect.provide(
    Layer.mergeAll(layerSeal, layerStoredTraceExport, layerArchive, layerPackVerifiers)
  )
)

/** What is wrong with the pack or the report; undefined if both say that something was changed. */
export const packComplaint = Effect.fnUntraced(function* (tenantId: string) {
  const { scope, zip } = yield* packOf(tenantId)
  const folder = mkdtempSync(join(tmpdir(), "alk-tampering-"))
  const path = join(folder, "pack.zip")
  writeFileSync(path, zip)
  const { exitCode, text } = yield* verifyPack([path, "--public-key", signer.vkey]).pipe(
    Effect.provide(layerArchive),
    Effect.ensuring(Effect.sync(() => rmSync(folder, { recursive: true })))
  )
  const { tone, word } = verdictOf(scope.verification)
  if (exitCode !== 1) return `alk verify says of the pack: ${text.slice(0, 300)}`
  return tone === "broken" ? undefined : `the report says: ${word}`
})
