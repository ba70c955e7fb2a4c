import { once } from "node:events"
import type { Command } from "commander"
import { agentModel } from "../../agents/agent.ts"
import { ApiError } from "../../chat/api-error.ts"
import { tokenText } from "../../chat/dialect.ts"
import { type Answered, endpoint, healthPath, type ServedModel, unknownKey } from "../../endpoint/endpoint.ts"
import { isKey, keyFromEnvironment, newKey } from "../../http/key.ts"
import { listen } from "../../http/listen.ts"
import { list, wholeNumber } from "../arguments.ts"
import { describeFailure } from "../fail.ts"
import { type GenerationArguments, generationOptions, openGenerator } from "../open-generator.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"

interface ServeArguments extends GenerationArguments {
  readonly host: string
  readonly port: number
  readonly name: readonly string[]
  readonly allowHost: readonly string[]
  readonly grace: number
}

/** Environment variable of the key. Command-line arguments are visible to all users of a machine. */
const keyVariable = "GIGPO_API_KEY"

export function serveCommand(command: Command): Command {
  return generationOptions(command)
    .description(
      "Serves clients of the APIs of OpenAI (/v1/chat/completions, /v1/responses, /v1/completions), Anthropic (/v1/messages) and Ollama " +
        "(/api/chat, /api/generate), with and without streaming. The first two lines of standard output are the address and the " +
        `key for clients. ${keyVariable} sets the key; by default it is random. Each request is logged on ` +
        "standard error. Ctrl-C stops the server after the completions in progress (--grace); a second Ctrl-C stops it at once.",
    )
    .option("--host <address>", "address to listen on; 0.0.0.0: all interfaces", "127.0.0.1")
    .option("-p, --port <number>", "port to listen on; 0: any free port", wholeNumber(0, 65_535), 8080)
    .option("--name <name>", "name of the model in requests; repeatable", list)
    .option("--allow-host <name>", "additional host name of this server, e.g. of a proxy; repeatable", list)
    .option("--grace <seconds>", "time for completions in progress when the server stops", wholeNumber(0, 86_400), 10)
    .addHelpText(
      "after",
      `\nThe default of --name is "${agentModel}", as in training, so that a trained agent only needs another base URL.`,
    )
    .action((model, options) => interruptible((signal) => runServe(model, options, signal), { saves: true }))
}

async function runServe(named: string, options: ServeArguments, signal: AbortSignal): Promise<void> {
  const apiKey = keyFromEnvironment(keyVariable) ?? newKey()
  const { host, port, name: models = [agentModel], allowHost: names = [], grace } = options
  const log = new Screen(process.stderr, { live: false })
  let speaker: ServedModel | undefined
  const find = (given: string) => {
    if (!isKey(given, apiKey)) return undefined
    if (!speaker) throw new ApiError(503, "The model is being opened; try again in a moment.")
    return speaker
  }
  const answer = endpoint({
    find,
    ready: () => speaker !== undefined,
    onError: (error) => log.print(describeFailure(error)),
    onAnswer: (answered) => log.print(describeAnswered(answered)),
  })
  const open = (path: string) => path === healthPath
  const keys = { known: (given: string) => isKey(given, apiKey), open, refusal: unknownKey }
  // Listen before the model is opened, which may take minutes: an occupied port fails at once.
  const server = await listen(answer, { host, port, names, keys })
  try {
    await using model = await openGenerator(named, options, signal, false)
    // Agents post anchor states and rewards as in training; outside of training they are ignored.
    const episode = { step() {}, end() {} }
    speaker = { generator: model.generator, models, textOf: tokenText(model.tokenizer), episode }
    process.stdout.write(`${server.url}/v1\n${apiKey}\n`)
    log.print(`Serving ${named} as ${models.join(", ")}; Ctrl-C stops the server.`)
    if (model.tokenizer.chatTemplate === undefined)
      log.print("The model has no chat template: it answers /v1/completions, and /api/generate with raw: true.")
    if (!signal.aborted) await activity.idle(() => once(signal, "abort"))
    await activity.during("completions in progress to end", () => server.close(grace))
  } finally {
    await server.close()
  }
}

function describeAnswered({ method, path, status, milliseconds, tokens }: Answered): string {
  const time = new Date().toISOString()
  const counted = tokens ? ` ${tokens.prompt}+${tokens.completion} tokens` : ""
  return `${time} ${method} ${path.slice(0, 100)} ${status}${counted} ${Math.round(milliseconds)} ms`
}
