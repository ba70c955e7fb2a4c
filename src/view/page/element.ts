export type Child = Node | string | number | undefined | false
type Attributes = Readonly<Record<string, string | number | boolean | undefined | ((event: Event) => void)>>

/**
 * Creates an element with attributes, listeners (functions, by event name) and children. Strings become text nodes, never HTML, so that
 * texts of models and environments cannot inject markup.
 */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  return filled(document.createElement(name), attributes, children)
}

/** Creates an SVG element, as `element` does for HTML. */
export function drawing<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Name] {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children)
}

function filled<Made extends Element>(made: Made, attributes: Attributes, children: readonly Child[]): Made {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value)
    else if (value === true) made.setAttribute(name, "")
    else if (value !== undefined && value !== false) made.setAttribute(name, String(value))
  }
  for (const child of children)
    if (child !== undefined && child !== false) made.append(child instanceof Node ? child : String(child))
  return made
}
