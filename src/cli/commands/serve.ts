import { once } from "node:events"
import type { Command } from "commander"
import { agentModel } from "../../agents/agent.ts"
import { ApiError } from "../../chat/api-error.ts"
import { tokenText } from "../../chat/dialect.ts"
import { type Answered, endpoint, type Speaker, unknownKey } from "../../endpoint/endpoint.ts"
import { isKey, keyFromEnvironment, newKey } from "../../http/key.ts"
import { listen } from "../../http/listen.ts"
import { list, wholeNumber } from "../arguments.ts"
import { describeFailure } from "../fail.ts"
import { openSpeaking, type SpeakArguments, speakOptions } from "../speak.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"

interface ServeArguments extends SpeakArguments {
  readonly host: string
  readonly port: number
  readonly name: readonly string[]
  readonly allowHost: readonly string[]
  readonly grace: number
}

/** The key is read from the environment: the words of a command are seen by everybody on the machine. */
const keyVariable = "GIGPO_API_KEY"

export function serveCommand(command: Command): Command {
  return speakOptions(command)
    .description(
      "Answers POST /v1/chat/completions and /v1/responses, whole and streamed. The first two lines of standard output are the address and the " +
        `key that clients need, which ${keyVariable} sets and which is made where it is not set; a line for each request goes to ` +
        "standard error. Ctrl-C ends it: replies that are under way have a while to end, and a second Ctrl-C ends it at once.",
    )
    .option("--host <address>", "whom to answer; 0.0.0.0 is everybody who has the key", "127.0.0.1")
    .option("-p, --port <number>", "0 takes any that is free", wholeNumber(0, 65_535), 8080)
    .option("--name <name>", "what the model is called in requests; may be repeated", list)
    .option("--allow-host <name>", "a name that clients call it by, a proxy's say; may be repeated", list)
    .option("--grace <seconds>", "how long replies under way have at the end", wholeNumber(0, 86_400), 10)
    .addHelpText(
      "after",
      `\nWithout --name it is "${agentModel}", as in training: an agent that was trained changes only its base URL.`,
    )
    .action((model, options) => interruptible((signal) => runServe(model, options, signal), { saves: true }))
}

async function runServe(named: string, options: ServeArguments, signal: AbortSignal): Promise<void> {
  const apiKey = keyFromEnvironment(keyVariable) ?? newKey()
  const { host, port, name: models = [agentModel], allowHost: names = [], grace } = options
  const log = new Screen(process.stderr, { live: false })
  let speaker: Speaker | undefined
  const find = (given: string) => {
    if (!isKey(given, apiKey)) return undefined
    if (!speaker) throw new ApiError(503, "The model is being opened; try again in a moment.")
    return speaker
  }
  const answer = endpoint({
    find,
    onError: (error) => log.print(describeFailure(error)),
    onAnswer: (answered) => log.print(describeAnswered(answered)),
  })
  const keys = { known: (given: string) => isKey(given, apiKey), refusal: unknownKey }
  // Before the model, which may take minutes to open: a port that is taken is told at once.
  const server = await listen(answer, { host, port, names, keys })
  try {
    await using model = await openSpeaking(named, options, signal)
    // Agents tell of their state and reward as in training; here nobody needs to know.
    const episode = { step() {}, end() {} }
    speaker = { voice: model.voice, models, textOf: tokenText(model.tokenizer), episode }
    process.stdout.write(`${server.url}/v1\n${apiKey}\n`)
    log.print(`${named} is served as ${models.join(", ")}; Ctrl-C ends it.`)
    if (!signal.aborted) await activity.idle(() => once(signal, "abort"))
    await activity.during("answers under way to end", () => server.close(grace))
  } finally {
    await server.close()
  }
}

function describeAnswered({ method, path, status, milliseconds, tokens }: Answered): string {
  const time = new Date().toISOString()
  const counted = tokens ? ` ${tokens.prompt}+${tokens.reply} tokens` : ""
  return `${time} ${method} ${path.slice(0, 100)} ${status}${counted} ${Math.round(milliseconds)} ms`
}
