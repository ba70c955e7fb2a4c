import { existsSync, readFileSync } from "node:fs"

// What the official client and a server said to each other, recorded; it lies beside the project, not in it.

const file = new URL("../../../shared/data/tinker/exchanges.jsonl", import.meta.url)
export const there = existsSync(file)
export const reason = there ? "" : " (skipped: ../shared/data/tinker is not there)"

interface Said {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly body_base64?: string
  readonly body_proto?: Readonly<Record<string, unknown>>
}

export interface Exchange {
  readonly n: number
  readonly phase: string
  readonly method: string
  readonly path: string
  readonly request: Said
  readonly response: Said & { readonly status: number }
}

export const exchanges: readonly Exchange[] = there
  ? readFileSync(file, "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  : []
