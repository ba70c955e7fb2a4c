import { Command } from "commander"
import { unlessAborted } from "../../linked-abort.ts"
import { visible } from "../../visible.ts"
import { checkMachine, type Finding } from "../doctor.ts"
import { interruptible } from "../terminal/interrupt.ts"

/** Exit code where something is missing that training needs. */
const missing = 3

export function doctorCommand(): Command {
  return new Command("doctor")
    .summary("check what this machine has and whether the engine works")
    .description(
      "Says what this machine has and runs a short self-test of the engine. Exit code 3 when something needed is missing.",
    )
    .option("--json", "print the findings as one JSON line")
    .action((options) => interruptible((signal) => unlessAborted(signal, () => runDoctor(options))))
}

async function runDoctor({ json = false }: { readonly json?: boolean }): Promise<void> {
  const findings = await checkMachine()
  if (json) process.stdout.write(`${JSON.stringify({ ok: findings.every(isFine), findings })}\n`)
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
