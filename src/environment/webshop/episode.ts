import type { EnvironmentEpisode, EpisodeContext, Observation } from "../environment.ts"
import { Lifecycle } from "../lifecycle.ts"
import type { ResolvedOptions } from "./options.ts"
import { button } from "./pages.ts"
import type { Page, Shop } from "./shop.ts"

/** Text of the first observation. */
export const startText = `'${button.search}'`

/** Starts an episode with the observations and rewards of verl-agent. */
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
 * Observation of a page as in verl-agent: the quoted texts after the instruction. The last page has no instruction and is not quoted. Pages
 * do not show the chosen options, so the anchor "state" appends them, sorted by name.
 */
function observe({ heading, texts, links, chosen }: Page, kind: "page" | "state"): Observation {
  const text = (heading.length > 0 ? texts.map((part) => `'${part}'`) : texts).join(" [SEP] ")
  const choices = kind === "state" && chosen ? [...chosen].map((choice) => JSON.stringify(choice)).sort() : []
  const actions = [...links].filter(([, effect]) => effect !== undefined).map(([name]) => `click[${name}]`)
  return { text, anchor: [text, ...choices].join("\n"), actions }
}
