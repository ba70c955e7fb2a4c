import { Command, Option } from "commander"
import { version } from "../util/version.ts"
import { commandLine, readSeconds } from "./arguments.ts"
import { refuseRenamed } from "./commands.ts"

/** The command gigpo with the options of every command. */
export const program = new Command("gigpo")
  .description("Train LLM agents by reinforcement learning (GiGPO) with a built-in C++ engine.")
  .version(version)
  .option("--debug", "print stack traces of errors (or set the environment variable DEBUG)")
  .addOption(
    new Option(
      "--heartbeat <seconds>",
      "print a progress line on standard error after this many seconds without output; 0 disables",
    )
      .env("GIGPO_HEARTBEAT")
      .argParser(readSeconds)
      .default(2),
  )
  .addHelpText("after", `\nTo start from scratch: ${commandLine("init", "sokoban", "demo")}`)
  .addHelpText(
    "after",
    "\nExit codes: 0 done, 2 wrong command or input, 3 device, build or memory missing, 4 failed, " +
      "130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP (terminal closed).",
  )
refuseRenamed(program)
