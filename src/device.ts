import { type NativeDeviceReport, native } from "./native.ts"

/** What this machine and this build offer. `unavailable` says why no CUDA device can be used, with the fix. */
export type DeviceReport = NativeDeviceReport

/** Asks the driver anew at every call. A machine without a GPU is no error. */
export function deviceReport(): DeviceReport {
  return native().deviceReport()
}
