import { visible } from "./visible.ts"

/** Listener of warnings: what is odd but no reason to stop. */
export type OnWarning = (message: string) => void

/** A Node.js warning. Texts of other parties in it (of models, data, servers) cannot control a terminal. */
export function warn(message: string): void {
  process.emitWarning(visible(message))
}

/** The same for a listener that options may name. Default: `warn`. */
export function warner(onWarning: OnWarning = warn): OnWarning {
  return (message) => onWarning(visible(message))
}
