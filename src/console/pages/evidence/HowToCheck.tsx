/** What to do with a file, and how to check it without trust in it or in this service. */
import type { ExportJob } from "../../../client/gen/Api.d.ts"
import { Copy } from "../../parts/Basics.tsx"

const Command = ({ text }: { readonly text: string }) => (
  <div class="command">
    <pre>{text}</pre>
    <Copy label="Copy" text={text} />
  </div>
)

const sumOf = ({ file_name, sha256 }: ExportJob): string =>
  `echo "${sha256}  ${file_name}" | sha256sum --check`

const OfPack = ({ job }: { readonly job: ExportJob }) => (
  <>
    <p>
      Give the ZIP to the auditor as it is. It is checked without this service, offline: unpack it,
      then run one of these, or open <code>verify.html</code> in a browser.
    </p>
    <Command
      text={`unzip ${job.file_name} -d pack && cd pack\nnode verify.mjs\npython3 verify.py`}
    />
    <p>
      A verifier in a pack comes from the maker of the pack. To show who made it, give them a public
      key or a checkpoint that you have kept from elsewhere:{" "}
      <a href="/.well-known/alk-keys.json" download="alk-keys.json">
        the public keys
      </a>
      , then <code>--public-key alk-keys.json</code>.
    </p>
  </>
)

const OfPdf = ({ job }: { readonly job: ExportJob }) => (
  <>
    <p>
      The report is to be read and signed. It names the SHA-256 of its events with the command that
      repeats it, and has <code>verification.json</code> attached. To prove the events themselves,
      make the evidence pack of the same period.
    </p>
    <Command text={sumOf(job)} />
  </>
)

const OfTable = ({ job }: { readonly job: ExportJob }) => (
  <>
    <p>
      A copy of the events, in the order of the chain. It proves nothing by itself: make the
      evidence pack of the same period for that. That this file is the one that was made here:
    </p>
    <Command text={sumOf(job)} />
  </>
)

export const HowToCheck = ({ job }: { readonly job: ExportJob }) => (
  <details class="how" open>
    <summary>What to do with it</summary>
    {job.kind === "pack" ? (
      <OfPack job={job} />
    ) : job.kind === "pdf" ? (
      <OfPdf job={job} />
    ) : (
      <OfTable job={job} />
    )}
  </details>
)
