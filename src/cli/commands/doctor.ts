import type { Command } from "commander"
import { unlessAborted } from "../../util/linked-abort.ts"
import { visible } from "../../util/visible.ts"
import { wholeNumber } from "../arguments.ts"
import { checkMachine, type Finding } from "../doctor.ts"
import { checkEngine } from "../doctor-engine.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"

/** Exit code if something required for training is missing. */
const missing = 3

export function doctorCommand(command: Command): Command {
  return command
    .description(
      "Reports the hardware and runs a short self-test of the engine. Exit code 3 if something required is missing. With --engine it " +
        "probes a server of the Tinker API instead, with about twenty requests that train nothing: its losses, clipping and handling of repeated " +
        "requests. The key is the environment variable TINKER_API_KEY.",
    )
    .option("--engine <url>", "probe this server instead")
    .option("--plain-http", "send the key to the server over unencrypted http")
    .option("--engine-model <name>", "model on the server; required if the server has several models")
    .option("--rank <number>", "rank of the adapter to probe; 0: all weights", wholeNumber(0, 4096), 8)
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
