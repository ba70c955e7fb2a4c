import axe from "axe-core"
import type { Page } from "playwright-core"
import { expect } from "vitest"

/** Nothing of what axe checks is wrong with the page as it stands, in light and in dark. */
export async function expectAccessible(page: Page): Promise<void> {
  // Into the page by the debugger: its content policy lets no other script in.
  await page.evaluate(axe.source)
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
    const found = await page.evaluate(async () => {
      const run = (globalThis as unknown as { axe: typeof axe }).axe.run
      const { violations } = await run(document, { preload: false, resultTypes: ["violations"] })
      return violations.map(({ id, nodes }) => ({
        id,
        nodes: nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 300)} ${failureSummary}`),
      }))
    })
    expect(found, colorScheme).toEqual([])
  }
}

/** Goes on by Tab until the element that `selector` names has the focus, as somebody without a mouse does. */
export async function tabTo(page: Page, selector: string, most = 300): Promise<void> {
  for (let pressed = 0; pressed < most; pressed += 1) {
    await page.keyboard.press("Tab")
    if (await page.evaluate((name) => document.activeElement?.matches(name) ?? false, selector)) return
  }
  throw new Error(`Tab does not lead to ${selector}`)
}
