import { element } from "./element.ts"

/** In place of what is not there: what is missing, and what to do about it. */
export function notice(title: string, ...sentences: readonly (string | Node)[]): HTMLElement {
  return element("div", { class: "notice" }, element("p", { class: "title" }, title), element("p", {}, ...sentences))
}

/** In place of the episodes of a run that has none on disk. */
export function noEpisodes(): HTMLElement {
  return notice(
    "This run has no recorded episodes.",
    "gigpo train and gigpo gateway record episodes from the first iteration on, unless the configuration has ",
    element("code", {}, "episodes: { every: 0 }"),
    "; in a program, give train() the observer ",
    element("code", {}, "recordEpisodes({ tokenizer })"),
    ". What was played before cannot be had again.",
  )
}
