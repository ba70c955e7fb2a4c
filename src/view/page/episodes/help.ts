import { element } from "../element.ts"

/** Dialog with the keyboard shortcuts of a view, opened by `?`. */
export function help(keys: readonly (readonly [string, string])[]): { readonly button: HTMLElement; show(): void } {
  const dialog = element(
    "dialog",
    { class: "help", "aria-labelledby": "help-title" },
    element("h3", { id: "help-title" }, "Keyboard shortcuts"),
    element(
      "dl",
      {},
      ...keys.flatMap(([key, does]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, does)]),
    ),
    element("form", { method: "dialog" }, element("button", {}, "Close")),
  )
  const show = () => dialog.showModal()
  return {
    button: element(
      "span",
      {},
      element("button", { type: "button", class: "quiet", click: show }, "Keys", element("kbd", {}, "?")),
      dialog,
    ),
    show,
  }
}
