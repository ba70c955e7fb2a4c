import type { IterationReport } from "../../runs/report.ts"
import type { RunInfo, Source } from "../data/source.ts"

interface Held {
  readonly cursor: string
  readonly reports: readonly IterationReport[]
}

/** As many are shown at first: so many colours there are. */
const shownAtFirst = 8

/** The runs, which of them are shown, and their reports: asked once for all views, and kept up to date while runs go on. */
export class RunStore {
  readonly #source: Source
  #runs: readonly RunInfo[]
  /** Whether a run is shown, where somebody has said so. Kept while the page is open: another report has other runs by these names. */
  readonly #chosen = new Map<string, boolean>()
  readonly #held = new Map<string, Promise<Held>>()
  readonly #listeners = new Set<() => void>()

  constructor(source: Source, runs: readonly RunInfo[]) {
    this.#source = source
    this.#runs = runs
  }

  /** In the order in which they became known: a run keeps its place, and so its colour. */
  get runs(): readonly RunInfo[] {
    return this.#runs
  }

  /** Those that are compared. At least one, where there are any. */
  get shown(): readonly RunInfo[] {
    const shown = this.#runs.filter(({ id }, place) => this.#chosen.get(id) ?? place < shownAtFirst)
    return shown.length > 0 ? shown : this.#runs.slice(0, 1)
  }

  show(run: string, shown: boolean): void {
    this.#chosen.set(run, shown)
    this.#tell()
  }

  /** What a run has reported so far. */
  async reports(run: string): Promise<readonly IterationReport[]> {
    let held = this.#held.get(run)
    if (!held) {
      held = this.#ask(run)
      this.#held.set(run, held)
      // What failed may be asked again.
      held.catch(() => this.#held.delete(run))
    }
    return (await held).reports
  }

  /** Calls `listener` when runs, reports, or what is shown have changed, until `signal`. */
  subscribe(listener: () => void, signal: AbortSignal): void {
    if (signal.aborted) return
    this.#listeners.add(listener)
    signal.addEventListener("abort", () => this.#listeners.delete(listener))
  }

  /** Asks for what is new of the runs that go on; with `all` also whether others began to. */
  async refresh({ all }: { readonly all: boolean }): Promise<void> {
    const before = this.#runs
    if (all) for (const info of await this.#source.runs()) this.#note(info)
    const held = await Promise.all(
      Array.from(this.#held, async ([run, asked]): Promise<boolean> => {
        const now = this.#runs.find(({ id }) => id === run)
        const same = now === before.find(({ id }) => id === run)
        if (now?.state !== "running" && same) return false
        const old = await asked
        const next = await this.#ask(run, old)
        if (next.reports === old.reports) return false
        this.#held.set(run, Promise.resolve(next))
        return true
      }),
    )
    if (this.#runs !== before || held.includes(true)) this.#tell()
  }

  async #ask(run: string, old?: Held): Promise<Held> {
    const { run: info, cursor, reset, reports } = await this.#source.reports(run, old?.cursor)
    this.#note(info)
    if (!old || reset) return { cursor, reports }
    if (reports.length === 0) return { cursor, reports: old.reports }
    // One that lacked its evaluation comes again with it.
    const first = reports[0]!.iteration
    return { cursor, reports: [...old.reports.filter(({ iteration }) => iteration < first), ...reports] }
  }

  #note(info: RunInfo): void {
    const place = this.#runs.findIndex(({ id }) => id === info.id)
    if (place >= 0 && JSON.stringify(this.#runs[place]) === JSON.stringify(info)) return
    this.#runs = place < 0 ? [...this.#runs, info] : this.#runs.with(place, info)
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
