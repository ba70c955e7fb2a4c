import { element } from "./element.ts"

/** Number of rows that are drawn and removed together. */
const together = 20
/** Distance in pixels from the visible part within which rows are drawn. */
const near = 800

/**
 * List of which only the rows near the visible part are in the page, so that its length does not matter. Rows may have any height and
 * change it.
 */
export class Windowed {
  readonly root: HTMLElement
  readonly #sections: readonly HTMLElement[]
  readonly #count: number
  readonly #draw: (row: number) => HTMLElement
  readonly #sight: IntersectionObserver

  /**
   * @param draw - makes a row; called again after a row was removed
   * @param height - typical height of a row in pixels, for rows that were never drawn
   */
  constructor(count: number, draw: (row: number) => HTMLElement, height: number, signal: AbortSignal) {
    this.#count = count
    this.#draw = draw
    this.#sections = Array.from({ length: Math.ceil(count / together) }, (_, section) => {
      const made = element("div", { class: "section" })
      made.style.height = `${Math.min(together, count - section * together) * height}px`
      return made
    })
    this.root = element("div", { class: "windowed" }, ...this.#sections)
    this.#sight = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries)
          if (isIntersecting) this.#fill(target as HTMLElement)
          else this.#empty(target as HTMLElement)
      },
      { rootMargin: `${near}px` },
    )
    for (const section of this.#sections) this.#sight.observe(section)
    signal.addEventListener("abort", () => this.#sight.disconnect())
  }

  /** Row in the page. Draws it if necessary. */
  row(row: number): HTMLElement {
    const section = this.#sections[Math.floor(row / together)]!
    this.#fill(section)
    return section.children[row % together] as HTMLElement
  }

  /** Draws all rows of the page again. */
  redraw(): void {
    for (const section of this.#sections)
      if (section.childElementCount > 0) {
        section.replaceChildren()
        this.#fill(section)
      }
  }

  #fill(section: HTMLElement): void {
    if (section.childElementCount > 0) return
    const first = this.#sections.indexOf(section) * together
    const rows = Array.from({ length: Math.min(together, this.#count - first) }, (_, at) => this.#draw(first + at))
    section.replaceChildren(...rows)
    section.style.height = ""
  }

  /** Removes the rows of a section, which keeps its height, unless one of them has the focus. */
  #empty(section: HTMLElement): void {
    if (section.childElementCount === 0 || section.contains(document.activeElement)) return
    section.style.height = `${section.offsetHeight}px`
    section.replaceChildren()
  }
}
