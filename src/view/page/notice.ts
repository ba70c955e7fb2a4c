import { element } from "./element.ts"

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
