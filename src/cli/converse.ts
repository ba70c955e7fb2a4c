import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { GigpoError } from "../util/errors.ts"
import { linkAbort } from "../util/linked-abort.ts"
import type { Conversation } from "./conversation.ts"
import type { ChatView } from "./terminal/chat-view.ts"
import { Stopped } from "./terminal/interrupt.ts"

export const chatCommands = `  /clear          forget what was said
  /system <text>  begin anew, with this as what the model is told first; without a text, with nothing
  /exit           leave, as Ctrl-D does`

export interface ConverseSetup {
  readonly conversation: Conversation
  readonly view: ChatView
  readonly input: Readable
  /** Where a person types: what is typed is edited and shown there. */
  readonly terminal?: Writable | undefined
  readonly signal: AbortSignal
}

/**
 * A conversation, a message or a command a line, until the input ends. On a terminal Ctrl-C stops a reply; a second one, or one where
 * there is no reply, leaves. What the model cannot take ends it only where nobody is there to say something else.
 */
export async function converse({ conversation, view, input, terminal, signal }: ConverseSetup): Promise<void> {
  const lines = createInterface({ input, ...(terminal && { output: terminal, terminal: true }), prompt: "> ", signal })
  let left: Stopped | undefined
  let reply: AbortController | undefined
  lines.on("SIGINT", () => {
    if (reply && !reply.signal.aborted) return reply.abort()
    left = new Stopped("SIGINT")
    reply?.abort(left)
    lines.close()
  })
  const say = async (text: string) => {
    reply = new AbortController()
    const unlink = linkAbort(signal, reply)
    try {
      view.end(await conversation.say(text, reply.signal, (said) => view.tell(said)))
    } catch (error) {
      if (!terminal || !GigpoError.is(error) || error.code !== "BAD_ARGUMENT") throw error
      view.note(`${error.message} /clear begins anew.`)
    } finally {
      unlink()
      reply = undefined
    }
  }
  try {
    if (terminal) lines.prompt()
    for await (const line of lines) {
      signal.throwIfAborted()
      const [, command, rest = ""] = /^\/([a-z]+)(?:\s+(.*))?$/.exec(line.trim()) ?? []
      if (command === "exit" || left) break
      if (command === "clear") conversation.clear()
      else if (command === "system") conversation.instruct(rest.trim() || undefined)
      else if (command !== undefined) view.note(`There is no /${command}. There are:\n${chatCommands}`)
      else if (line.trim() !== "") await say(line)
      if (left) break
      if (terminal) lines.prompt()
    }
  } finally {
    lines.close()
  }
  signal.throwIfAborted()
  if (left) throw left
}
