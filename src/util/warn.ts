import { visible } from "./visible.ts"

/** Listener for warnings. */
export type OnWarning = (message: string) => void

/** Emits a Node.js warning. Texts from elsewhere in the message are escaped. */
export function warn(message: string): void {
  process.emitWarning(visible(message))
}

/** Wraps a warning listener so that messages are escaped. Default: `warn`. */
export function warner(onWarning: OnWarning = warn): OnWarning {
  return (message) => onWarning(visible(message))
}
