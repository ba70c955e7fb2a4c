import type { IterationReport } from "../runs/report.ts"
import type { Training } from "./prepare.ts"
import { stopReason } from "./stop.ts"

/**
 * What a run has reported, in this process and in those before it. From it alone it follows what is still to be evaluated and whether
 * the run is over, so that a resumed run decides as it would have without the stop.
 */
export class Journal {
  readonly #training: Pick<Training, "options" | "run">
  readonly #reports: IterationReport[]
  readonly #before: number
  readonly #started: number = performance.now()

  static async open(training: Pick<Training, "options" | "run">): Promise<Journal> {
    return new Journal(training, (await training.run?.reports()) ?? [])
  }

  private constructor(training: Pick<Training, "options" | "run">, reports: readonly IterationReport[]) {
    this.#training = training
    this.#reports = [...reports]
    this.#before = reports.at(-1)?.metrics["time/run"] ?? 0
  }

  get reports(): readonly IterationReport[] {
    return this.#reports
  }

  /** What was reported of this iteration; an empty report where nothing was. */
  at(iteration: number): IterationReport {
    return this.#reports.findLast((report) => report.iteration === iteration) ?? { iteration, metrics: {} }
  }

  /** The report with the time of now, and how long the run has taken. */
  stamp({ iteration, time: _, metrics, ...rest }: IterationReport): IterationReport {
    const taken = this.#before + (performance.now() - this.#started) / 1000
    return { iteration, time: new Date().toISOString(), metrics: { ...metrics, "time/run": taken }, ...rest }
  }

  /** Whether an evaluation belongs into the report that is not there. */
  lacksEvaluation(report: IterationReport): boolean {
    const { every } = this.#training.options.evaluation
    return every > 0 && !report.evaluation && (report.iteration % every === 0 || this.isLast(report))
  }

  isLast(report: IterationReport): boolean {
    return report.iteration >= this.#training.options.iterations || this.stopped(report) !== undefined
  }

  /** Why the run ends with this report, before its last iteration. */
  stopped(report: IterationReport): string | undefined {
    const { iterations, stop } = this.#training.options
    if (report.iteration >= iterations) return undefined
    return stopReason([...this.#reports.filter(({ iteration }) => iteration < report.iteration), report], stop)
  }

  /** Puts the report on the disk, in place of one of the same iteration that lacked its evaluation. */
  async log({ stopped: _, ...report }: IterationReport): Promise<IterationReport> {
    const why = this.stopped(report)
    const whole = why === undefined ? report : { ...report, stopped: why }
    const { run } = this.#training
    if (this.#reports.at(-1)?.iteration === report.iteration) {
      await run?.amend(whole)
      this.#reports.pop()
    } else await run?.log(whole)
    this.#reports.push(whole)
    return whole
  }
}
