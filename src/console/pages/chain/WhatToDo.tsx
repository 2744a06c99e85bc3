/** The steps after a break was found: keep what proves it, find out what was changed, mend the view. */

import type { Break, Readiness } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Copy } from "../../parts/Basics.tsx"
import { count } from "../../parts/Format.ts"
import type { ChainName } from "../../state/VerificationRequest.ts"
import { recordOf } from "./ChainWords.ts"

/** Beside the service that runs, with its configuration. */
const MEND = "npm start -- rebuild-view"
const REPAIR_HELP = "npm start -- repair --help"
/** Where the embedded broker is, unless it was chosen otherwise. */
const BOOTSTRAP = "127.0.0.1:9092"

const Command = ({ text }: { readonly text: string }) => (
  <p class="chain-command">
    <code>{text}</code> <Copy label="Copy" text={text} />
  </p>
)

export const WhatToDo = ({
  chain,
  found,
  save
}: {
  readonly chain: ChainName
  readonly found: Break
  readonly save: () => void
}) => {
  const readiness = useAnswer<Readiness>("/readyz")
  const bootstrap = readiness.data?.kafka.bootstrap ?? BOOTSTRAP
  const topic = chain === "events" ? "alk.events" : "alk.traces"
  const name = `${recordOf(chain)} #${count(found.sequence_number)}`
  return (
    <ol class="what-to-do">
      <li>
        Keep what proves it, before anything is changed: this report, and a copy of the data folder
        or of the database.{" "}
        <button type="button" onClick={save}>
          Save the report
        </button>
      </li>
      <li>
        Look at the record on the log, which the store is only a view of, and compare {name} with
        what the store shows:
        <Command text={`npx node test/independent/kafka_reader.mjs ${bootstrap} ${topic}`} />
      </li>
      <li>
        Is the log as it was? Check a checkpoint that you kept elsewhere, below. If the chain does
        not lead to it, the log was written anew: the copy that you kept and the packs that you
        exported are the evidence. Don't go on with this installation.
      </li>
      <li>
        If the log holds the record as it was, only the view was changed. Beside the service that
        runs, this compares the view with the log and mends it; rows that the log denies go to the
        table set_aside, as evidence:
        <Command text={MEND} />
        Then verify again.
      </li>
      <li>
        If the log has lost records, the sequencer refuses the partition and names them. Restore
        them from a replica or a backup. What can be done if there is none:
        <Command text={REPAIR_HELP} />
      </li>
      <li>
        Find out who may write to the database and to the topics, and change their passwords: alk
        finds a change, it can't prevent one.
      </li>
    </ol>
  )
}
