/** A key that signs checkpoints in tests: always the same, so signatures can be compared. */
import { signerOf } from "../../src/domain/chain/Checkpoint.ts"

export const checkpointSigner = {
  serviceName: "alk",
  signer: signerOf("alk", Buffer.alloc(32, 7))
}
