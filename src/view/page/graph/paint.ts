/** Distance from the middle below which values are neutral. */
const faint = 0.02

/** Colours an element and what stands in it; the style sheet says by what. */
export function paint(element: SVGElement | HTMLElement, tone: number): void {
  element.classList.toggle("better", tone > faint)
  element.classList.toggle("worse", tone < -faint)
  element.style.setProperty("--share", `${Math.round(Math.abs(tone) * 100)}%`)
}
