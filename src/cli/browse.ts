import { on } from "node:events"
import { emitKeypressEvents } from "node:readline"
import type { Browser } from "./terminal/browser.ts"
import type { Screen } from "./terminal/screen.ts"

interface Key {
  readonly name?: string
  readonly ctrl?: boolean
}

/** Runs a browser on a terminal until the user leaves. */
export async function browse(
  browser: Browser,
  screen: Screen,
  input: NodeJS.ReadStream,
  signal: AbortSignal,
): Promise<void> {
  const draw = () => screen.show(browser.lines(screen), true)
  emitKeypressEvents(input)
  input.setRawMode(true)
  try {
    draw()
    for await (const [, { name = "", ctrl }] of on(input, "keypress", { signal }) as AsyncIterable<[string, Key]>) {
      if (!(await browser.press(ctrl ? `ctrl+${name}` : name, screen))) break
      draw()
    }
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    input.setRawMode(false)
    input.pause()
    screen.clear()
  }
}
