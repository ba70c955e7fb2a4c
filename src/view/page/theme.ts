import { element } from "./element.ts"
import { recall, remember } from "./remembered.ts"

const themes = { system: "System", light: "Light", dark: "Dark" }
const changed = new EventTarget()
const systemDark = matchMedia("(prefers-color-scheme: dark)")
systemDark.addEventListener("change", () => changed.dispatchEvent(new Event("change")))

/** Control for the theme: light, dark, or that of the system. The choice is stored. */
export function themeChoice(): HTMLElement {
  const apply = (theme: string) => {
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme
    else delete document.documentElement.dataset.theme
    changed.dispatchEvent(new Event("change"))
  }
  const chosen = recall("theme") ?? "system"
  const select = element(
    "select",
    {
      "aria-label": "Colours",
      change() {
        remember("theme", select.value)
        apply(select.value)
      },
    },
    ...Object.entries(themes).map(([value, text]) => element("option", { value, selected: value === chosen }, text)),
  )
  apply(chosen)
  return select
}

/** Calls `listener` after the colours have changed. Canvas drawings do not update automatically. */
export function onThemeChange(listener: () => void, signal: AbortSignal): void {
  changed.addEventListener("change", listener, { signal })
}

/**
 * Resolved value of a colour in main.css, with `var(--x)` and `light-dark()` computed, for a canvas.
 *
 * @param percent - opacity in percent
 */
export function colour(name: string, percent = 100): string {
  const key = `${name} ${percent}`
  const known = resolved.get(key)
  if (known !== undefined) return known
  const probe = element("span", { class: "unseen" })
  probe.style.color = `color-mix(in srgb, var(--${name}) ${percent}%, transparent)`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  resolved.set(key, color)
  return color
}

/** Cache until the theme changes, because resolving a colour forces a layout of the page. */
const resolved = new Map<string, string>()
changed.addEventListener("change", () => resolved.clear())
