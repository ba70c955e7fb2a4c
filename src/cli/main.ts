import { Command, Option } from "commander"
import { version } from "../util/version.ts"
import { commandLine, readSeconds } from "./arguments.ts"
import { runProgram } from "./program.ts"

const program = new Command("gigpo")
  .description("Train LLM agents by reinforcement learning (GiGPO), natively.")
  .version(version)
  .option("--debug", "print stack traces of errors; also by the environment variable DEBUG")
  .addOption(
    new Option(
      "--silence <seconds>",
      "say on standard error what is waited for after so long without output; 0 never does",
    )
      .env("GIGPO_SILENCE")
      .argParser(readSeconds)
      .default(2),
  )
  .addHelpText("after", `\nTo begin, where nothing is there yet: ${commandLine("init", "sokoban", "demo")}`)
  .addHelpText(
    "after",
    "\nExit codes: 0 done, 2 wrong command or input, 3 device or build missing, 4 failed, " +
      "130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP (the terminal has gone).",
  )

await runProgram(program)
