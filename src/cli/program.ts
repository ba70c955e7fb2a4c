import type { Command } from "commander"
import { GigpoError } from "../errors.ts"
import { reportFailure } from "./fail.ts"
import { leave, Stopped } from "./terminal/interrupt.ts"

/** What a stream says whose reader has gone: `| head` that has seen enough, or a terminal that was closed. */
const readerGone: ReadonlySet<string | undefined> = new Set(["EPIPE", "EIO"])

/** Milliseconds that what an environment left behind may keep the process alive. */
const lingering = 1000

/** Runs the command that was typed and sets the exit code. */
export async function runProgram(program: Command): Promise<void> {
  // No reason to stop training, nor to end without having saved it.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (cause: NodeJS.ErrnoException) => {
      if (readerGone.has(cause.code)) return
      throw new GigpoError("IO", `What is printed cannot be written: ${cause.message}`, { cause })
    })
  }
  const debug = () => program.opts<{ debug?: boolean }>().debug === true || Boolean(process.env.DEBUG)
  process.on("uncaughtException", (error) => {
    // Whoever else listens has work to save.
    if (process.listenerCount("uncaughtException") === 1) process.exit(reportFailure(error, debug()))
  })

  for (const command of allOf(program)) command.exitOverride().showHelpAfterError("(--help explains)")
  try {
    await program.parseAsync(typed(program), { from: "user" })
  } catch (error) {
    process.exitCode = reportFailure(error, debug())
    if (error instanceof Stopped) return leave(error)
  }
  setTimeout(() => process.exit(), lingering).unref()
}

/** A command and all that stand below it. */
function allOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allOf)]
}

/** What was typed; of a command that there is not no help is asked, which commander would answer with that of all and no error. */
function typed(program: Command): string[] {
  const words = process.argv.slice(2)
  const command = words.find((word) => !word.startsWith("-"))
  const known = ["help", ...program.commands.map((one) => one.name())]
  if (command === undefined || known.includes(command)) return words
  return words.filter((word) => word !== "-h" && word !== "--help")
}
