import type { IterationReport } from "../../runs/report.ts"
import type { RunInfo, Source } from "../data/source.ts"

interface Held {
  readonly cursor: string
  readonly reports: readonly IterationReport[]
}

/** Number of runs that are shown initially, equal to the number of colours. */
const shownAtFirst = 8

/** Runs, the selection of shown runs, and their reports. Requested once for all views, and updated while runs are in progress. */
export class RunStore {
  readonly #source: Source
  #runs: readonly RunInfo[]
  /** Runs that the user has shown or hidden. Kept only while the page is open, because another report may have other runs with these names. */
  readonly #chosen = new Map<string, boolean>()
  readonly #held = new Map<string, Promise<Held>>()
  readonly #listeners = new Set<() => void>()

  constructor(source: Source, runs: readonly RunInfo[]) {
    this.#source = source
    this.#runs = runs
  }

  /** Runs in the order of discovery. The order determines the colour of a run. */
  get runs(): readonly RunInfo[] {
    return this.#runs
  }

  /** Runs that are compared. At least one if there are any runs. */
  get shown(): readonly RunInfo[] {
    const shown = this.#runs.filter(({ id }, place) => this.#chosen.get(id) ?? place < shownAtFirst)
    return shown.length > 0 ? shown : this.#runs.slice(0, 1)
  }

  show(run: string, shown: boolean): void {
    this.#chosen.set(run, shown)
    this.#tell()
  }

  /** Shows or hides several runs. */
  showAll(runs: readonly string[], shown: boolean): void {
    for (const run of runs) this.#chosen.set(run, shown)
    this.#tell()
  }

  /** Shows a run and hides the others. */
  showOnly(run: string): void {
    for (const { id } of this.#runs) this.#chosen.set(id, id === run)
    this.#tell()
  }

  /** Reports of a run so far. */
  async reports(run: string): Promise<readonly IterationReport[]> {
    let held = this.#held.get(run)
    if (!held) {
      held = this.#ask(run)
      this.#held.set(run, held)
      // Allows a new request after a failure.
      held.catch(() => this.#held.delete(run))
    }
    return (await held).reports
  }

  /** Calls `listener` when runs, reports or the selection have changed, until `signal` is aborted. */
  subscribe(listener: () => void, signal: AbortSignal): void {
    if (signal.aborted) return
    this.#listeners.add(listener)
    signal.addEventListener("abort", () => this.#listeners.delete(listener))
  }

  /** Requests new reports of runs in progress; with `all`, also new runs. */
  async refresh({ all }: { readonly all: boolean }): Promise<void> {
    const before = this.#runs
    if (all) {
      const infos = await this.#source.runs()
      for (const info of infos) this.#note(info)
      for (const { id } of before) if (!infos.some((info) => info.id === id)) this.#remove(id)
    }
    const held = await Promise.all(
      Array.from(this.#held, async ([run, request]): Promise<boolean> => {
        const now = this.#runs.find(({ id }) => id === run)
        const same = now === before.find(({ id }) => id === run)
        if (now?.state === "deleted" || (now?.state !== "running" && same)) return false
        const old = await request
        const next = await this.#ask(run, old)
        if (next.reports === old.reports) return false
        this.#held.set(run, Promise.resolve(next))
        return true
      }),
    )
    if (this.#runs !== before || held.includes(true)) this.#tell()
  }

  async #ask(run: string, old?: Held): Promise<Held> {
    const page = await this.#source.reports(run, old?.cursor)
    if (!page) {
      this.#remove(run)
      return old ?? { cursor: "", reports: [] }
    }
    const { run: info, cursor, reset, reports } = page
    this.#note(info)
    if (!old || reset) return { cursor, reports }
    if (reports.length === 0) return { cursor, reports: old.reports }
    // A report that lacked its evaluation is sent again with the evaluation.
    const first = reports[0]!.iteration
    return { cursor, reports: [...old.reports.filter(({ iteration }) => iteration < first), ...reports] }
  }

  #note(info: RunInfo): void {
    const place = this.#runs.findIndex(({ id }) => id === info.id)
    if (place >= 0 && JSON.stringify(this.#runs[place]) === JSON.stringify(info)) return
    this.#runs = place < 0 ? [...this.#runs, info] : this.#runs.with(place, info)
  }

  /** Marks a run whose folder was removed. Its curves stay until the page is loaded again. */
  #remove(run: string): void {
    const place = this.#runs.findIndex(({ id }) => id === run)
    if (place >= 0) this.#note({ ...this.#runs[place]!, state: "deleted" })
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
