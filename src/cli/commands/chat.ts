import { text } from "node:stream/consumers"
import type { Command } from "commander"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { Conversation } from "../conversation.ts"
import { chatCommands, converse } from "../converse.ts"
import { openSpeaking, type SpeakArguments, speakOptions } from "../speak.ts"
import { activity } from "../terminal/activity.ts"
import { ChatView } from "../terminal/chat-view.ts"
import { interruptible } from "../terminal/interrupt.ts"

interface ChatArguments extends SpeakArguments {
  readonly system?: string
  readonly lines?: boolean
}

export function chatCommand(command: Command): Command {
  return speakOptions(command)
    .description(
      "A conversation with a model, whose replies are shown as they are sampled. Ctrl-C stops a reply, and leaves where there is none. What " +
        "the model thinks, and all that is not its reply, goes to standard error.",
    )
    .option("--system <text>", "what the model is told first")
    .option("--lines", "piped input is a conversation, a message or command a line; else all of it is one message")
    .addHelpText("after", `\nCommands:\n${chatCommands}`)
    .action((model, options) => interruptible((signal) => runChat(model, options, signal)))
}

async function runChat(named: string, options: ChatArguments, signal: AbortSignal): Promise<void> {
  const { stdin, stdout, stderr } = process
  const terminal = stdin.isTTY && stdout.isTTY ? stdout : undefined
  const view = new ChatView(stdout, stderr)
  const piped = terminal || options.lines ? undefined : await activity.idle(() => readMessage(signal))
  await using model = await openSpeaking(named, options, signal)
  const conversation = new Conversation(model.voice, options.system)
  if (piped === undefined)
    return await activity.idle(() => converse({ conversation, view, input: stdin, terminal, signal }))
  view.end(await conversation.say(piped, signal, (said) => view.tell(said)))
  signal.throwIfAborted()
}

async function readMessage(signal: AbortSignal): Promise<string> {
  const message = (await unlessAborted(signal, () => text(process.stdin))).replace(/\n$/, "")
  if (message.trim() !== "") return message
  throw new GigpoError(
    "BAD_ARGUMENT",
    "There is nothing on standard input to say to the model; pipe a message into it.",
  )
}
