import type { Command } from "commander"
import { unlessAborted } from "../../util/linked-abort.ts"
import { visible } from "../../util/visible.ts"
import { wholeNumber } from "../arguments.ts"
import { checkMachine, type Finding } from "../doctor.ts"
import { checkEngine } from "../doctor-engine.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"

/** Exit code where something is missing that training needs. */
const missing = 3

export function doctorCommand(command: Command): Command {
  return command
    .description(
      "Says what this machine has and runs a short self-test of the engine. Exit code 3 when something needed is missing. With --engine it " +
        "tries a server of the Tinker API instead, with some twenty requests that train nothing: what it does with losses, clips and doubled " +
        "requests; its key is TINKER_API_KEY of the environment.",
    )
    .option("--engine <url>", "try this server instead")
    .option("--plain-http", "send the key to that server over http, which is not encrypted")
    .option("--engine-model <name>", "which of its models; default: the only one that it has")
    .option("--rank <number>", "of the adapters that are tried; 0 for all weights", wholeNumber(0, 4096), 8)
    .option("--json", "print the findings as one JSON line")
    .action((options) => interruptible((signal) => unlessAborted(signal, () => runDoctor(options))))
}

interface DoctorArguments {
  readonly json?: boolean
  readonly engine?: string
  readonly engineModel?: string
  readonly plainHttp?: boolean
  readonly rank: number
}

async function runDoctor({
  json = false,
  engine,
  engineModel: model,
  plainHttp,
  rank,
}: DoctorArguments): Promise<void> {
  const findings =
    engine === undefined ? await checkMachine() : await checkEngine({ url: engine, model, plainHttp, rank })
  if (json) printJson({ ok: findings.every(isFine), findings })
  else for (const finding of findings) process.stdout.write(`${visible(describe(finding))}\n`)
  if (!findings.every(isFine)) process.exitCode = missing
}

function isFine({ state }: Finding): boolean {
  return state !== "missing"
}

const marks = { ok: "ok", note: "--", missing: "MISSING" } as const

function describe({ name, state, value }: Finding): string {
  return `${marks[state].padEnd(8)} ${name.padEnd(16)} ${value}`
}
