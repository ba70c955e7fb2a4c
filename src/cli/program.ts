import type { Command } from "commander"
import { reportFailure } from "./fail.ts"

/** Runs the command that was typed and sets the exit code. */
export async function runProgram(program: Command): Promise<void> {
  // A reader that has seen enough (`| head`) is no reason to stop training.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error
    })
  }
  const debug = () => program.opts<{ debug?: boolean }>().debug === true || Boolean(process.env.DEBUG)
  process.on("uncaughtException", (error) => process.exit(reportFailure(error, debug())))

  for (const command of [program, ...program.commands]) command.exitOverride().showHelpAfterError("(--help explains)")
  try {
    await program.parseAsync(typed(program), { from: "user" })
  } catch (error) {
    process.exitCode = reportFailure(error, debug())
  }
  // What an environment left behind must not keep the process alive.
  setTimeout(() => process.exit(), 1000).unref()
}

/** What was typed; of a command that there is not no help is asked, which commander would answer with that of all and no error. */
function typed(program: Command): string[] {
  const words = process.argv.slice(2)
  const command = words.find((word) => !word.startsWith("-"))
  const known = ["help", ...program.commands.map((one) => one.name())]
  if (command === undefined || known.includes(command)) return words
  return words.filter((word) => word !== "-h" && word !== "--help")
}
