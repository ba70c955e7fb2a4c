import { Command, Option } from "commander"
import { version } from "../util/version.ts"
import { commandLine, readSeconds } from "./arguments.ts"
import { runProgram } from "./program.ts"

const program = new Command("gigpo")
  .description("Train LLM agents by reinforcement learning (GiGPO), natively.")
  .version(version)
  .option("--debug", "print stack traces of errors (or set the environment variable DEBUG)")
  .addOption(
    new Option(
      "--silence <seconds>",
      "report the current work on standard error after this time without output; 0: never",
    )
      .env("GIGPO_SILENCE")
      .argParser(readSeconds)
      .default(2),
  )
  .addHelpText("after", `\nTo start from scratch: ${commandLine("init", "sokoban", "demo")}`)
  .addHelpText(
    "after",
    "\nExit codes: 0 done, 2 wrong command or input, 3 device or build missing, 4 failed, " +
      "130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP (terminal closed).",
  )

await runProgram(program)
