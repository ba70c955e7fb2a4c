/** Distance from the middle below which values are neutral. */
const faint = 0.02

/** Sets the classes and the variable from which the style sheet computes an element's colour. `tone` is from -1 (worse) to 1 (better). */
export function paint(element: SVGElement | HTMLElement, tone: number): void {
  element.classList.toggle("better", tone > faint)
  element.classList.toggle("worse", tone < -faint)
  element.style.setProperty("--share", `${Math.round(Math.abs(tone) * 100)}%`)
}
