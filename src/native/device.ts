import { type NativeDeviceReport, type NativeMatmulLibraryReport, native } from "./native.ts"

/** What this machine and this build offer. `unavailable` says why no CUDA device can be used, with the fix. */
export type DeviceReport = NativeDeviceReport

/** Asks the driver anew at every call. A machine without a GPU is no error. */
export function deviceReport(): DeviceReport {
  return native().deviceReport()
}

/** Whether NVIDIA's matrix library (cuBLASLt) is found and passes a test on the first device; `message` says why not. */
export type MatmulLibraryReport = NativeMatmulLibraryReport

/** Opens the first device to try the library there: that takes a moment, and some of its memory. */
export function matmulLibraryReport(): MatmulLibraryReport {
  return native().matmulLibraryReport()
}
