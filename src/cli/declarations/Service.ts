/** Commands that run the service on this machine, and those of the shell. */
import type { Command } from "commander"
import { collect } from "../Arguments.ts"
import { declare, GROUPS, ofService, withResult } from "./Declare.ts"

const declareService = (program: Command): void => {
  const run = async (...args: ReadonlyArray<string>) =>
    (await import("../commands/Service.ts")).runService(args)
  declare(program, {
    usage: "up",
    description: "Run the service; without configuration, on embedded parts (npm start)",
    group: GROUPS.service,
    examples: ["alk up", "PORT=9000 alk up", "alk up --settings"],
    notes: "Every setting is an environment variable."
  })
    .option("--settings", "list them all, and start nothing")
    .action(({ settings }) => (settings === true ? run("--help") : run()))
  declare(program, {
    usage: "rotate-key",
    description: "Put a new signing key in the place of the one in the data folder",
    group: GROUPS.service,
    examples: ["alk rotate-key"],
    notes: "The service must not run. The next start lets the old key endorse the new one."
  }).action(() => run("rotate-key"))
  declare(program, {
    usage: "views <tenant>",
    description: "Print SQL that gives tools on ClickHouse the views of a tenant",
    group: GROUPS.service,
    examples: ["alk views acme > views.sql"]
  }).action((tenant) => run("views", tenant))
  declare(program, {
    usage: "repair <partition>",
    description: "Give up what a partition has lost, after the sequencer refused it",
    group: GROUPS.service,
    examples: ["alk repair 3 --accept-loss", "alk repair registry --accept-loss"]
  })
    .option("--accept-loss", "nothing can be restored any more")
    .action((partition, { acceptLoss }) =>
      run("repair", partition, ...(acceptLoss === true ? ["--accept-loss"] : []))
    )
}

const declareRebuild = (program: Command): void => {
  declare(program, {
    usage: "rebuild-view",
    description: "Compare what ClickHouse shows with the log, and mend it while it is served",
    group: GROUPS.service,
    examples: ["alk rebuild-view", "alk rebuild-view --tenant acme", "alk rebuild-view --status"],
    notes: [
      "With the configuration of the service, which runs: its projection does the work, this command",
      "asks for it and tells how far it is. Missing rows are stored again, rows that the log denies go to",
      "the table set_aside. Ended before it is done, the work goes on; --status tells how far."
    ].join("\n")
  })
    .option("--tenant <tenant>", "only what belongs to this tenant")
    .option("--status", "ask for nothing; tell how far the last request is")
    .option("--json", "JSON, as in a pipe")
    .option("-q, --quiet", "nothing on standard error but errors")
    .action(async ({ json, quiet, status, tenant }) =>
      (await import("../commands/Service.ts")).runService([
        "rebuild-view",
        ...(tenant === undefined ? [] : ["--tenant", tenant]),
        ...(status === true ? ["--status"] : []),
        ...(json === true ? ["--json"] : []),
        ...(quiet === true ? ["--quiet"] : [])
      ])
    )
}

const declareBackup = (program: Command): void => {
  const run = async (...args: ReadonlyArray<string>) =>
    (await import("../commands/Service.ts")).runService(args)
  declare(program, {
    usage: "backup",
    description: "Copy the log of a service that runs into a folder; again, only what is new",
    group: GROUPS.service,
    examples: [
      "alk backup -o /mnt/backups/alk",
      "17 * * * *  alk backup -o /mnt/backups/alk --quiet"
    ],
    notes: [
      "With the configuration of the service: ALK_DATA_DIR of one with the embedded broker, else",
      "KAFKA_BROKERS. The folder holds the secret and the signing key unless --no-keys is given.",
      "It can be ended at any time: what the manifest names stays valid, and the next run goes on."
    ].join("\n")
  })
    .requiredOption("-o, --output <folder>", "new, empty, or one that alk backup made")
    .option("--no-keys", "leave secret and signing key out; a restore needs them from elsewhere")
    .option("--json", "JSON, as in a pipe")
    .option("-q, --quiet", "nothing on standard error but errors")
    .action(({ json, keys, output, quiet }) =>
      run(
        "backup",
        "-o",
        output,
        ...(keys === false ? ["--no-keys"] : []),
        ...(json === true ? ["--json"] : []),
        ...(quiet === true ? ["--quiet"] : [])
      )
    )
}

const declareRestore = (program: Command): void => {
  const run = async (...args: ReadonlyArray<string>) =>
    (await import("../commands/Service.ts")).runService(args)
  declare(program, {
    usage: "restore <folder>",
    description: "Check a backup, and write it to an empty data folder or cluster",
    group: GROUPS.service,
    examples: [
      "alk restore /mnt/backups/alk --check",
      "alk restore /mnt/backups/alk --checkpoint ~/alk-witness/events.ndjson"
    ],
    notes: [
      "With the configuration of the service. --checkpoint names what alk chain keep, or another witness,",
      "has kept outside: it says how many events are missing since the backup, and whether the tree",
      "is the one that was signed. Exit code 1 if it is not: then nothing is written."
    ].join("\n")
  })
    .option("--checkpoint <file>", "kept outside of the service; may be repeated", collect)
    .option("--check", "write nothing")
    .option("--json", "JSON, as in a pipe")
    .option("-q, --quiet", "nothing on standard error but errors")
    .action((folder, { check, checkpoint = [], json, quiet }) =>
      run(
        "restore",
        folder,
        ...checkpoint.flatMap((file: string) => ["--checkpoint", file]),
        ...(check === true ? ["--check"] : []),
        ...(json === true ? ["--json"] : []),
        ...(quiet === true ? ["--quiet"] : [])
      )
    )
}

const declareForget = (program: Command): void => {
  const run = async (...args: ReadonlyArray<string>) =>
    (await import("../commands/Service.ts")).runService(args)
  declare(program, {
    usage: "forget <action> [file]",
    description: "Take what was erased out of the topics: plan, apply, or record what was done",
    group: GROUPS.service,
    examples: [
      "alk forget plan",
      "alk forget apply",
      "alk forget apply --log-dir /var/lib/kafka",
      "alk forget record alk-forgotten.json"
    ],
    notes: [
      "On the files of the broker of this machine, which has to be stopped for apply: with the embedded",
      "broker ALK_DATA_DIR names them, else --log-dir, with ALK_SECRET of the service. In a cluster each",
      "broker has its copies. It can be ended at any time: run it again. What was done is logged by the",
      "next start of a service with the embedded broker; else by record, from the file alk-forgotten.json",
      "that apply leaves in the log folder."
    ].join("\n")
  })
    .option("--log-dir <folder>", "one of the broker's log.dirs; may be repeated", collect)
    .option("--json", "JSON, as in a pipe")
    .option("-q, --quiet", "nothing on standard error but errors")
    .action((action, file, { json, logDir = [], quiet }) =>
      run(
        "forget",
        action,
        ...(file === undefined ? [] : [file]),
        ...logDir.flatMap((folder: string) => ["--log-dir", folder]),
        ...(json === true ? ["--json"] : []),
        ...(quiet === true ? ["--quiet"] : [])
      )
    )
}

const declareMachine = (program: Command): void => {
  const run = async (...args: ReadonlyArray<string>) =>
    (await import("../commands/Service.ts")).runService(args)
  declare(program, {
    usage: "doctor",
    description: "Check what the service needs on this machine, by its configuration",
    group: GROUPS.shell,
    examples: ["alk doctor", "PORT=9000 alk doctor"],
    notes: [
      "Java, Chromium, ports, disk, brokers, ClickHouse; and of the service that the context names,",
      "whether it answers, its clock, and what the key may do. Exit code 1 if something is missing."
    ].join("\n")
  }).action(() => run("doctor"))
  declare(program, {
    usage: "bench [options...]",
    description: "Measure what the service does on this machine (npm run bench)",
    group: GROUPS.shell,
    examples: ["alk bench -- --help", "alk bench --quick --only ingest"],
    notes: "Its options are those of npm run bench."
  })
    .allowUnknownOption()
    .action(async (options) => (await import("../commands/Service.ts")).runBench(options))
}

const declareShell = (program: Command): void => {
  const login = declare(program, {
    usage: "login",
    description: "Keep address and key of a service in a file that only you can read",
    group: GROUPS.shell,
    examples: [
      "alk login",
      "alk login --url https://audit.example.com --context production < key.txt",
      "alk login --show"
    ],
    notes: [
      "At a terminal it asks for the key and does not show it; else it reads it from standard input.",
      "The context that was kept last is the current one; others by --context or ALK_CONTEXT.",
      "The file is contexts.json in $XDG_CONFIG_HOME/alk or ~/.config/alk. ALK_URL, ALK_API_KEY and",
      "ALK_CONTEXT go before it."
    ].join("\n")
  })
    .option("--show", "which service, tenant and scopes are used now")
    .option("--logout", "remove the context")
  withResult(ofService(login)).action(async (options) =>
    (await import("../commands/Login.ts")).login(options)
  )
  declare(program, {
    usage: "completion <shell>",
    description: "Print the completion of bash or zsh",
    group: GROUPS.shell,
    examples: ["source <(alk completion bash)", "source <(alk completion zsh)"]
  }).action(async (shell) => {
    const { completion } = await import("../commands/Completion.ts")
    process.stdout.write(completion(shell, program))
  })
}

export const declareServiceAndShell = (program: Command): void => {
  declareService(program)
  declareRebuild(program)
  declareBackup(program)
  declareRestore(program)
  declareForget(program)
  declareShell(program)
  declareMachine(program)
}
