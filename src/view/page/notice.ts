import type { EpisodePage, RunInfo } from "../data/source.ts"
import { element } from "./element.ts"
import type { PageContext } from "./view.ts"

/** Notice in place of missing content: what is missing, and how to get it. */
export function notice(title: string, ...sentences: readonly (string | Node)[]): HTMLElement {
  return element("div", { class: "notice" }, element("p", { class: "title" }, title), element("p", {}, ...sentences))
}

/** Notice for a run without recorded episodes. */
export function noEpisodes(): HTMLElement {
  return notice(
    "This run has no recorded episodes.",
    "gigpo train and gigpo gateway record episodes from the first iteration on, unless the configuration has ",
    element("code", {}, "episodes: { every: 0 }"),
    "; in a program, give train() the observer ",
    element("code", {}, "recordEpisodes({ tokenizer })"),
    ". Episodes that were not recorded cannot be recovered.",
  )
}

/** Notice of damaged recordings; undefined if there are none. */
export function damaged(iterations: readonly number[]): HTMLElement | undefined {
  if (iterations.length === 0) return undefined
  const some = iterations.slice(0, 8).join(", ") + (iterations.length > 8 ? ", …" : "")
  return element(
    "p",
    { class: "trouble", role: "status" },
    `The episodes of ${iterations.length === 1 ? `iteration ${some}` : `${iterations.length} iterations (${some})`} cannot be read, because ` +
      "the file is damaged. The output of gigpo view contains the reason.",
  )
}

/** Shows what is being read until it has been read. Reading may take seconds. */
export async function whileReading<Value>(root: HTMLElement, what: string, work: Promise<Value>): Promise<Value> {
  const note = element("p", { class: "loading", role: "status" }, `Reading ${what} …`)
  root.append(note)
  try {
    return await work
  } finally {
    note.remove()
  }
}

/** Summaries of a run's episodes. Throws if the run no longer exists. */
export async function readingEpisodes(root: HTMLElement, run: RunInfo, context: PageContext): Promise<EpisodePage> {
  const { source, signal } = context
  const page = await whileReading(root, "the list of episodes", source.episodes(run.id, undefined, signal))
  if (!page) throw new Error("This run no longer exists: its folder was removed.")
  return page
}
