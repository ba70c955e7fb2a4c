import { GigpoError } from "../../errors.ts"
import type { EnvironmentEpisode, EpisodeContext, Observation } from "../environment.ts"
import { button } from "./pages.ts"
import type { Page, Shop } from "./shop.ts"

/** The observation of the first page. */
export const startText = `'${button.search}'`

/** One visit to the shop, as verl-agent shows and rewards it. */
export function startEpisode(
  shop: Shop,
  { maxSteps, reward: kind }: { readonly maxSteps: number; readonly reward: "success" | "score" },
  { signal }: EpisodeContext,
): EnvironmentEpisode {
  signal.throwIfAborted()
  let page = shop.index()
  let steps = 0
  let state: "running" | "ended" | "disposed" = "running"
  return {
    first: observe(page),
    async step(action) {
      signal.throwIfAborted()
      if (state === "disposed") throw new GigpoError("DISPOSED", "This WebShop episode was disposed; start a new one.")
      if (state === "ended") throw new GigpoError("BAD_ARGUMENT", "This WebShop episode is over; start a new one.")
      page = shop.act(page, action)
      const score = page.verdict?.reward ?? 0
      const success = score === 1 ? 1 : 0
      const terminated = page.verdict !== undefined
      const truncated = ++steps >= maxSteps && !terminated
      if (terminated || truncated) state = "ended"
      return {
        observation: observe(page),
        reward: 10 * (kind === "success" ? success : score),
        terminated,
        truncated,
        metrics: { success, score },
      }
    },
    async [Symbol.asyncDispose]() {
      state = "disposed"
    },
  }
}

/**
 * What verl-agent shows, and groups steps by: the quoted texts behind the instruction; the last page, which has no instruction,
 * as it is.
 */
function observe({ heading, texts, links }: Page): Observation {
  const text = (heading.length > 0 ? texts.map((part) => `'${part}'`) : texts).join(" [SEP] ")
  const actions = [...links].filter(([, effect]) => effect !== undefined).map(([name]) => `click[${name}]`)
  return { text, anchor: text, actions }
}
