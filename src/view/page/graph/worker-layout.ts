import { layered } from "./layered.ts"
import type { Layout, LayoutRequest } from "./layout.ts"

/** The script of the worker, put in when the page is bundled. */
declare const LAYOUT_WORKER: string

/** Places the boxes in a worker of their own, so that the page stays quick, or plainly where there may be none. */
export async function layOut(request: LayoutRequest, signal: AbortSignal): Promise<Layout> {
  let worker: Worker
  const address = URL.createObjectURL(new Blob([LAYOUT_WORKER], { type: "text/javascript" }))
  try {
    worker = new Worker(address)
  } catch {
    URL.revokeObjectURL(address)
    return layered(request)
  }
  try {
    return await new Promise<Layout>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Layout>) => resolve(data)
      // Whatever keeps it from working: a policy, too large a graph.
      worker.onerror = () => resolve(layered(request))
      signal.addEventListener("abort", () => reject(signal.reason), { once: true })
      worker.postMessage(request)
    })
  } finally {
    worker.terminate()
    URL.revokeObjectURL(address)
  }
}
