import { element } from "../element.ts"

/** Keys of a view and what they do, in a dialog that `?` opens. */
export function help(keys: readonly (readonly [string, string])[]): { readonly button: HTMLElement; show(): void } {
  const dialog = element(
    "dialog",
    { class: "help", "aria-labelledby": "help-title" },
    element("h3", { id: "help-title" }, "Keys"),
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
