import { element } from "./element.ts"
import { recall, remember } from "./remembered.ts"

const themes = { system: "System", light: "Light", dark: "Dark" }
const changed = new EventTarget()
const systemDark = matchMedia("(prefers-color-scheme: dark)")
systemDark.addEventListener("change", () => changed.dispatchEvent(new Event("change")))

/** The choice of light, dark, or what the system has; remembered. */
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

/** Calls `listener` when the colours have changed: what is drawn on a canvas does not follow by itself. */
export function onThemeChange(listener: () => void, signal: AbortSignal): void {
  changed.addEventListener("change", listener, { signal })
}

/**
 * A colour of main.css as a canvas takes it: `var(--x)` and `light-dark()` worked out.
 *
 * @param percent - of it; the rest is see-through
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

/** Until the theme changes: working one out lays the page out. */
const resolved = new Map<string, string>()
changed.addEventListener("change", () => resolved.clear())
