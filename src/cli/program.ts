import type { Command } from "commander"
import { renamed } from "../options/renamed.ts"
import { GigpoError } from "../util/errors.ts"
import { addCommands } from "./commands.ts"
import { reportFailure } from "./fail.ts"
import { activity } from "./terminal/activity.ts"
import { leave, Stopped } from "./terminal/interrupt.ts"

/** Error codes of a stream without a reader, such as `| head` or a closed terminal. */
const readerGone: ReadonlySet<string | undefined> = new Set(["EPIPE", "EIO"])

/** Milliseconds that open handles of an environment may keep the process alive. */
const lingering = 1000

/** Adds all commands to a program, runs the typed one and sets the exit code. */
export async function runProgram(program: Command): Promise<void> {
  // A closed reader must neither stop training nor prevent saving.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (cause: NodeJS.ErrnoException) => {
      if (readerGone.has(cause.code)) return
      throw new GigpoError("IO", `Output cannot be written: ${cause.message}`, { cause })
    })
  }
  const debug = () => program.opts<{ debug?: boolean }>().debug === true || Boolean(process.env.DEBUG)
  process.on("uncaughtException", (error) => {
    // Other listeners have state to save.
    if (process.listenerCount("uncaughtException") === 1) process.exit(reportFailure(error, debug()))
  })

  program.hook("preAction", (_, command) => {
    activity.start(`${command.parent?.name()} ${command.name()}`, program.opts<{ heartbeat: number }>().heartbeat)
  })
  addCommands(program, configureAll)
  configureAll(program)
  try {
    await program.parseAsync(typed(program), { from: "user" })
  } catch (error) {
    process.exitCode = reportFailure(error, debug())
    if (error instanceof Stopped) return leave(error)
  }
  activity.stop()
  setTimeout(() => process.exit(), lingering).unref()
}

/** Makes a command and its subcommands throw their errors and refer to `--help`. */
function configureAll(command: Command): void {
  const outputError = (message: string, write: (text: string) => void) => write(withSetHint(message))
  command.exitOverride().showHelpAfterError("(--help shows the usage)").configureOutput({ outputError })
  for (const subcommand of command.commands) configureAll(subcommand)
}

/** Message of commander; one about further arguments after `--set key=value` says how several settings are given. */
function withSetHint(message: string): string {
  const isSetting = (word: string, at: number, words: string[]) =>
    /^\w[\w.-]*=/.test(word) && !/^(-s|--set)$/.test(words[at - 1]!)
  return message.includes("too many arguments") && process.argv.some(isSetting)
    ? `${message.trimEnd()} Give each setting its own --set: -s seed=1 -s threads=2\n`
    : message
}

/**
 * Arguments to parse. `help <command>` becomes `<command> --help`, since commander would describe a command that is not
 * yet defined. For an unknown command `--help` is removed: commander would print the help of gigpo without an error.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a command that was renamed.
 */
function typed(program: Command): string[] {
  const words = process.argv.slice(2)
  const isCommand = (word: string, at: number) => !word.startsWith("-") && words[at - 1] !== "--heartbeat"
  const at = words.findIndex(isCommand)
  const known = program.commands.map((one) => one.name())
  const [command, of] = words.slice(at)
  const old = command === "help" ? of : command
  const former = [old, `${command} ${of}`].find((name) => name !== undefined && Object.hasOwn(renamed.commands, name))
  if (at >= 0 && former !== undefined)
    throw new GigpoError("BAD_ARGUMENT", `The command ${former} was renamed to ${renamed.commands[former]}.`)
  if (command === "help" && of !== undefined && known.includes(of)) return [...words.slice(0, at), of, "--help"]
  if (at < 0 || command === "help" || known.includes(command!)) return words
  return words.filter((word) => word !== "-h" && word !== "--help")
}
