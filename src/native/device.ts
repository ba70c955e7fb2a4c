import { type NativeDeviceReport, type NativeMatmulLibraryReport, native } from "./native.ts"

/**
 * Devices and capabilities of this machine and build. `unavailable` says why no CUDA device can be used, with the fix.
 */
export type DeviceReport = NativeDeviceReport

/** Returns the device report; queries the driver at every call. A machine without a GPU is not an error. */
export function deviceReport(): DeviceReport {
  return native().deviceReport()
}

/**
 * Whether NVIDIA's matrix library (cuBLASLt) is found and passes a test on the first device; `message` gives the reason
 * if not.
 */
export type MatmulLibraryReport = NativeMatmulLibraryReport

/** Tests the matrix library on the first device, which takes a moment and some device memory. */
export function matmulLibraryReport(): MatmulLibraryReport {
  return native().matmulLibraryReport()
}
