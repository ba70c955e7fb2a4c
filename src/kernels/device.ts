import { GigpoError } from "../util/errors.ts"

/** Device of a kernel. */
export type KernelDevice = "auto" | "cpu" | "cuda"

/** Device for kernels whose arrays are not worth a transfer to a GPU: "auto" is the CPU. */
export function deviceOf(device: KernelDevice = "auto"): "cpu" | "cuda" {
  if (device === "auto") return "cpu"
  if (device === "cpu" || device === "cuda") return device
  throw new GigpoError("BAD_ARGUMENT", `device is ${JSON.stringify(device)}; it must be "auto", "cpu" or "cuda".`)
}
