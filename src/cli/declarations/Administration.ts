/** Commands that administer tenants, their keys, share links, partitions: names, options and examples. */
import { type Command, Option } from "commander"
import { wholeNumber } from "../Arguments.ts"
import { declare, GROUPS, ofService, withFilters, withResult } from "./Declare.ts"

const ADMIN_NOTE =
  "It needs the admin token: ALK_ADMIN_TOKEN, ALK_ADMIN_TOKEN_FILE, or a context's key (alk login)."

/** A command that only holds others. */
const group = (program: Command, name: string, description: string): Command =>
  program.command(name).description(description).helpGroup(GROUPS.administer)

const declareRetention = (tenants: Command): void => {
  const retention = declare(tenants, {
    usage: "retention <id>",
    description: "Show how long a tenant's records are kept, or set it",
    examples: [
      "alk tenants retention acme",
      "alk tenants retention acme --days 365",
      "alk tenants retention acme --for-ever"
    ],
    notes: ADMIN_NOTE
  })
    .option("--days <number>", "remove what is older", wholeNumber("--days", 1))
    .addOption(new Option("--for-ever", "remove nothing").conflicts("days"))
  withResult(ofService(retention)).action(async (id, options) =>
    (await import("../commands/Retention.ts")).retention(id, options)
  )
  const hold = declare(tenants, {
    usage: "hold <id>",
    description: "Set a legal hold: nothing of the tenant is removed until it is released",
    examples: ["alk tenants hold acme --reason 'case 2026-17'"],
    notes: ADMIN_NOTE
  }).requiredOption("--reason <text>", "why; it is kept and shown")
  withResult(ofService(hold)).action(async (id, options) =>
    (await import("../commands/Retention.ts")).hold(id, options)
  )
  const release = declare(tenants, {
    usage: "release <id>",
    description: "Release a legal hold",
    examples: ["alk tenants release acme --reason 'the case is closed'"],
    notes: ADMIN_NOTE
  }).option("--reason <text>", "why, for the log")
  withResult(ofService(release)).action(async (id, options) =>
    (await import("../commands/Retention.ts")).release(id, options)
  )
  const remove = declare(tenants, {
    usage: "delete <id>",
    description: "Delete a tenant for good, in two steps",
    examples: [
      "alk tenants delete acme --reason 'contract ended'",
      "alk tenants delete acme --confirm acme",
      "alk tenants delete acme --cancel"
    ],
    notes:
      `${ADMIN_NOTE}\nThe first step only asks for it; the second names the tenant once more. What is left `
      + "is how many records there were, with the signed checkpoint that proves it."
  })
    .option("--reason <text>", "why, for the log")
    .option("--confirm <id>", "do it: the id of the tenant again")
    .addOption(new Option("--cancel", "take it back").conflicts("confirm"))
  withResult(ofService(remove)).action(async (id, options) =>
    (await import("../commands/Retention.ts")).deleteTenant(id, options)
  )
}

const declareTenants = (program: Command): void => {
  const tenants = group(
    program,
    "tenants",
    "List, create and delete tenants, and how long their records are kept"
  )
  const list = declare(tenants, {
    usage: "list",
    description: "List the tenants",
    examples: ["alk tenants list", "alk tenants list --json | jq -r .id"],
    notes: ADMIN_NOTE
  })
  withResult(ofService(list)).action(async (options) =>
    (await import("../commands/Tenants.ts")).listTenants(options)
  )
  const create = declare(tenants, {
    usage: "create <id>",
    description: "Create a tenant",
    examples: ["alk tenants create acme --name 'Acme Ltd'"],
    notes: ADMIN_NOTE
  }).option("--name <name>", "for people")
  withResult(ofService(create)).action(async (id, options) =>
    (await import("../commands/Tenants.ts")).createTenant(id, options)
  )
  declareRetention(tenants)
}

const declareKeys = (program: Command): void => {
  const keys = group(program, "keys", "List, create and revoke API keys of a tenant")
  const list = declare(keys, {
    usage: "list <tenant>",
    description: "List a tenant's keys; what they are is not kept anywhere",
    examples: ["alk keys list acme"],
    notes: ADMIN_NOTE
  })
  withResult(ofService(list)).action(async (tenant, options) =>
    (await import("../commands/Keys.ts")).listKeys(tenant, options)
  )
  const create = declare(keys, {
    usage: "create <tenant>",
    description: "Create a key, which is shown only this once",
    examples: [
      "alk keys create acme --scopes write --label importer",
      "alk keys create acme --json | jq -r .key | alk login --context acme"
    ],
    notes: ADMIN_NOTE
  })
    .option("--scopes <scopes>", "read, write or read,write", "read,write")
    .option("--label <text>", "what the key is for")
    .option("--expires-in <seconds>", "how long it is valid", wholeNumber("--expires-in", 1))
  withResult(ofService(create)).action(async (tenant, options) =>
    (await import("../commands/Keys.ts")).createKey(tenant, options)
  )
  const revoke = declare(keys, {
    usage: "revoke <tenant> <id>",
    description: "Revoke a key by its id",
    examples: ["alk keys revoke acme KEY_ID"],
    notes: ADMIN_NOTE
  })
  ofService(revoke)
    .option("-q, --quiet", "nothing on standard error but errors")
    .action(async (tenant, id, options) =>
      (await import("../commands/Keys.ts")).revokeKey(tenant, id, options)
    )
}

const declareShare = (program: Command): void => {
  const share = group(program, "share", "Hand out report and pack of some events by a link")
  const create = declare(share, {
    usage: "create",
    description: "Make a link for the events that match, which is shown only this once",
    examples: [
      "alk share create --from 2026-01-01T00:00:00Z --label 'auditor' --expires-in 604800",
      "alk share create --action 'user.*' --max-uses 5 --json | jq -r .page_url"
    ]
  })
    .option("--label <text>", "whom it is for")
    .option("--expires-in <seconds>", "how long it is valid", wholeNumber("--expires-in", 1))
    .option("--max-uses <number>", "how often it may be used", wholeNumber("--max-uses", 1))
  withResult(ofService(withFilters(create))).action(async (options) =>
    (await import("../commands/Share.ts")).createLink(options)
  )
  const list = declare(share, {
    usage: "list",
    description: "List the links, and when they were used last",
    examples: ["alk share list"]
  })
  withResult(ofService(list)).action(async (options) =>
    (await import("../commands/Share.ts")).listLinks(options)
  )
  const revoke = declare(share, {
    usage: "revoke <id>",
    description: "Revoke a link by its id",
    examples: ["alk share revoke LINK_ID"]
  })
  ofService(revoke)
    .option("-q, --quiet", "nothing on standard error but errors")
    .action(async (id, options) => (await import("../commands/Share.ts")).revokeLink(id, options))
}

const declareQuarantine = (program: Command): void => {
  const quarantine = group(program, "quarantine", "Commands that could not be applied")
  const list = declare(quarantine, {
    usage: "list",
    description: "List commands in quarantine",
    examples: ["alk quarantine list", "alk quarantine list --state all --json | jq -r .id"],
    notes: ADMIN_NOTE
  }).addOption(
    new Option("--state <state>", "which of them")
      .choices(["open", "replayed", "dropped", "all"])
      .default("open")
  )
  withResult(ofService(list)).action(async (options) =>
    (await import("../commands/Quarantine.ts")).listQuarantine(options)
  )
  const show = declare(quarantine, {
    usage: "show <id>",
    description: "Show one, whose it is and what it holds",
    examples: ["alk quarantine show 3-1289", "alk quarantine show 3-1289 --raw > command.bin"],
    notes: ADMIN_NOTE
  }).option("--raw", "its bytes, the first 64 KiB")
  withResult(ofService(show)).action(async (id, options) =>
    (await import("../commands/Quarantine.ts")).showQuarantined(id, options)
  )
  const replay = declare(quarantine, {
    usage: "replay <id>",
    description: "Submit one again, once; its events come at the end of the chain",
    examples: ["alk quarantine replay 3-1289 --reason 'fixed by the update'"],
    notes:
      `${ADMIN_NOTE}\nAsk the sender first: what it has sent again without ids of its own and without `
      + "an Idempotency-Key is stored twice."
  }).option("--reason <text>", "why, for the log")
  withResult(ofService(replay)).action(async (id, options) =>
    (await import("../commands/Quarantine.ts")).replayQuarantined(id, options)
  )
  const drop = declare(quarantine, {
    usage: "drop <id...>",
    description: "Drop some: they are done with and can't be replayed",
    examples: ["alk quarantine drop 3-1289 3-1290 --reason 'not ours'"],
    notes: ADMIN_NOTE
  }).option("--reason <text>", "why, for the log")
  withResult(ofService(drop)).action(async (ids, options) =>
    (await import("../commands/Quarantine.ts")).dropQuarantined(ids, options)
  )
}

const declarePartitions = (program: Command): void => {
  const partitions = group(program, "partitions", "Partitions of the topics")
  const show = declare(partitions, {
    usage: "show",
    description: "Show how many there are, and over how many tenants are spread",
    examples: ["alk partitions show", "alk partitions show --json | jq .counts"],
    notes: ADMIN_NOTE
  })
  withResult(ofService(show)).action(async (options) =>
    (await import("../commands/Partitions.ts")).showPartitions(options)
  )
  const add = declare(partitions, {
    usage: "add",
    description: "Add some while the service runs; new tenants are spread over all",
    examples: ["alk partitions add --to 8 --dry-run", "alk partitions add --to 8"],
    notes:
      `${ADMIN_NOTE}\nIt can't be undone. Tenants stay in the partitions that they have. Interrupted, `
      + "it is repeated with the same number."
  })
    .requiredOption("--to <number>", "partitions of each topic then", wholeNumber("--to", 1))
    .option("--dry-run", "only say what it would do")
  withResult(ofService(add)).action(async (options) =>
    (await import("../commands/Partitions.ts")).addPartitions(options)
  )
}

export const declareAdministration = (program: Command): void => {
  declareTenants(program)
  declareKeys(program)
  declareShare(program)
  declareQuarantine(program)
  declarePartitions(program)
}
