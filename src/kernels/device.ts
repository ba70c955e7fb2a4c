import { GigpoError } from "../util/errors.ts"

/** Where a kernel runs. */
export type KernelDevice = "auto" | "cpu" | "cuda"

/** For kernels whose arrays are not worth sending to a GPU unless that is asked for. */
export function deviceOf(device: KernelDevice = "auto"): "cpu" | "cuda" {
  if (device === "auto") return "cpu"
  if (device === "cpu" || device === "cuda") return device
  throw new GigpoError("BAD_ARGUMENT", `device is ${JSON.stringify(device)}; it must be "auto", "cpu" or "cuda".`)
}
