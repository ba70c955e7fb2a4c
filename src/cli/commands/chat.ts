import { text } from "node:stream/consumers"
import type { Command } from "commander"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { Conversation } from "../conversation.ts"
import { chatCommands, converse } from "../converse.ts"
import { type GenerationArguments, generationOptions, openGenerator } from "../open-generator.ts"
import { activity } from "../terminal/activity.ts"
import { ChatView } from "../terminal/chat-view.ts"
import { interruptible } from "../terminal/interrupt.ts"

interface ChatArguments extends GenerationArguments {
  readonly system?: string
  readonly lines?: boolean
}

export function chatCommand(command: Command): Command {
  return generationOptions(command)
    .description(
      "Chats with a model and streams its completions. Ctrl-C stops a completion, or leaves if none is in progress. Thinking " +
        "and messages of gigpo go to standard error.",
    )
    .option("--system <text>", "system prompt")
    .option("--lines", "read piped input as one message or command per line; default: all input is one message")
    .addHelpText("after", `\nCommands:\n${chatCommands}`)
    .action((model, options) => interruptible((signal) => runChat(model, options, signal)))
}

async function runChat(named: string, options: ChatArguments, signal: AbortSignal): Promise<void> {
  const { stdin, stdout, stderr } = process
  const terminal = stdin.isTTY && stdout.isTTY ? stdout : undefined
  const view = new ChatView(stdout, stderr)
  const piped = terminal || options.lines ? undefined : await activity.idle(() => readMessage(signal))
  await using model = await openGenerator(named, options, signal)
  const conversation = new Conversation(model.generator, options.system)
  if (piped === undefined)
    return await activity.idle(() => converse({ conversation, view, input: stdin, terminal, signal }))
  view.end(await conversation.say(piped, signal, (piece) => view.tell(piece)))
  signal.throwIfAborted()
}

async function readMessage(signal: AbortSignal): Promise<string> {
  const message = (await unlessAborted(signal, () => text(process.stdin))).replace(/\n$/, "")
  if (message.trim() !== "") return message
  throw new GigpoError("BAD_ARGUMENT", "Standard input is empty; pipe a message into it.")
}
