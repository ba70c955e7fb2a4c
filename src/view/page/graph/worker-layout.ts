import { unpacked } from "../unpacked.ts"
import { layered } from "./layered.ts"
import type { Layout, LayoutRequest } from "./layout.ts"

/** Script of the worker, gzipped and in base64, inserted when the page is bundled. */
declare const LAYOUT_WORKER: string

/** Computes the layout in a worker, so that the page stays responsive, or by the simple layout where workers are not available. */
export async function layOut(request: LayoutRequest, signal: AbortSignal): Promise<Layout> {
  let worker: Worker
  const script = await unpacked(LAYOUT_WORKER).text()
  signal.throwIfAborted()
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }))
  try {
    worker = new Worker(address)
  } catch {
    URL.revokeObjectURL(address)
    return layered(request)
  }
  try {
    return await new Promise<Layout>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Layout>) => resolve(data)
      // Possible causes: a content security policy, or a graph that is too large.
      worker.onerror = () => resolve(layered(request))
      signal.addEventListener("abort", () => reject(signal.reason), { once: true })
      worker.postMessage(request)
    })
  } finally {
    worker.terminate()
    URL.revokeObjectURL(address)
  }
}
