import type { EnvironmentEpisode, EpisodeContext, Observation } from "../environment.ts"
import { Lifecycle } from "../lifecycle.ts"
import type { ResolvedOptions } from "./options.ts"
import { button } from "./pages.ts"
import type { Page, Shop } from "./shop.ts"

/** The observation of the first page. */
export const startText = `'${button.search}'`

/** One visit to the shop, as verl-agent shows and rewards it. */
export function startEpisode(
  shop: Shop,
  { maxSteps, reward: kind, anchor }: Pick<ResolvedOptions, "maxSteps" | "reward" | "anchor">,
  { signal }: EpisodeContext,
): EnvironmentEpisode {
  const life = new Lifecycle("WebShop", signal)
  let page = shop.index()
  let steps = 0
  return {
    first: observe(page, anchor),
    async step(action) {
      life.check()
      page = shop.act(page, action)
      const score = page.verdict?.reward ?? 0
      const success = score === 1 ? 1 : 0
      const terminated = page.verdict !== undefined
      const truncated = ++steps >= maxSteps && !terminated
      if (terminated || truncated) life.end()
      return {
        observation: observe(page, anchor),
        reward: 10 * (kind === "success" ? success : score),
        terminated,
        truncated,
        metrics: { success, score },
      }
    },
    async [Symbol.asyncDispose]() {
      life.dispose()
    },
  }
}

/**
 * What verl-agent shows, and groups steps by: the quoted texts behind the instruction; the last page, which has no instruction,
 * as it is. No page shows which options are chosen, so the anchor "state" adds them, in the order of their names.
 */
function observe({ heading, texts, links, chosen }: Page, kind: "page" | "state"): Observation {
  const text = (heading.length > 0 ? texts.map((part) => `'${part}'`) : texts).join(" [SEP] ")
  const choices = kind === "state" && chosen ? [...chosen].map((choice) => JSON.stringify(choice)).sort() : []
  const actions = [...links].filter(([, effect]) => effect !== undefined).map(([name]) => `click[${name}]`)
  return { text, anchor: [text, ...choices].join("\n"), actions }
}
