import type { NativeDeviceReport } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"

/** Device of a policy: one, or several GPUs by CUDA's numbers ("cuda:0,1"), or every usable GPU ("all"). */
export type DeviceName = "auto" | "cpu" | "cuda" | "all" | `cuda:${string}`

/** Values of `DeviceName`, apart from the rule that no GPU occurs twice. */
export const devicePattern = "^(auto|cpu|cuda|all|cuda:\\d{1,4}(,\\d{1,4})*)$"

/** What a device must be, or undefined for a valid one. */
export function deviceProblem(value: unknown): string | undefined {
  if (typeof value !== "string" || !new RegExp(devicePattern).test(value))
    return 'must be "auto", "cpu", "cuda", "all", or GPUs by their numbers, such as "cuda:1" or "cuda:0,1"'
  const numbers = numbersIn(value)
  return new Set(numbers).size === numbers.length ? undefined : "must name each GPU once"
}

/** Kind of the device that a name stands for. */
export function kindOf(device: DeviceName, report: () => NativeDeviceReport): "cpu" | "cuda" {
  if (device === "cpu") return device
  return device === "auto" && report().devices.length === 0 ? "cpu" : "cuda"
}

/** Numbers of the GPUs that a name stands for. Empty for the CPU, and for the first usable GPU. */
export function gpusOf(device: DeviceName, report: () => NativeDeviceReport): number[] {
  return device === "all" ? report().devices.map(({ index }) => index) : numbersIn(device)
}

/** Name of a GPU in options and messages. */
export function gpuName(index: number): string {
  return `cuda:${index}`
}

function numbersIn(device: string): number[] {
  return device.startsWith("cuda:") ? device.slice("cuda:".length).split(",").map(Number) : []
}

/** Rejects GPUs that cannot be used, or not together, with the reason. */
export function checkDevice(
  { device, gpus }: { readonly device: "cpu" | "cuda"; readonly gpus: readonly number[] },
  report: () => NativeDeviceReport,
): void {
  if (device === "cpu") return
  const { unavailable, devices } = report()
  if (devices.length === 0) {
    const reason = unavailable?.message ?? "No CUDA device was found."
    throw new GigpoError("DEVICE_UNAVAILABLE", `${reason} Use device "cpu".`)
  }
  const known = gpus.map((gpu) => devices.find(({ index }) => index === gpu))
  const missing = known.indexOf(undefined)
  if (missing >= 0) {
    const usable = devices.map(({ index }) => gpuName(index)).join(", ")
    throw new GigpoError(
      "DEVICE_UNAVAILABLE",
      `There is no usable GPU ${gpus[missing]}: use one of ${usable}, and check CUDA_VISIBLE_DEVICES.`,
    )
  }
  const [first] = known
  const other = known.find((one) => one!.name !== first!.name || one!.computeCapability !== first!.computeCapability)
  if (!other) return
  const same = devices.filter(({ name }) => name === first!.name).map(({ index }) => index)
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${gpuName(first!.index)} is a ${first!.name} and ${gpuName(other.index)} a ${other.name}: a policy needs GPUs of one kind, which ` +
      `compute the same bits. Use device "${gpuName(same[0]!)}${same
        .slice(1)
        .map((index) => `,${index}`)
        .join("")}".`,
  )
}
