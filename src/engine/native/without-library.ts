import { warn } from "../../util/warn.ts"

let isReported = false

/** Warns why the GPU engine does not use cuBLASLt, once per process. Silent if GIGPO_CUBLASLT is "off". */
export function warnWithoutLibrary(reason: string | undefined): void {
  if (reason === undefined || isReported || process.env.GIGPO_CUBLASLT === "off") return
  isReported = true
  warn(
    `Matrix products run on gigpo's own kernels, because cuBLASLt is not available (${reason}). ` +
      'Install it (the CUDA toolkit, or pip\'s nvidia-cublas), set GIGPO_CUBLASLT to its folder, or to "off" to run without it.',
  )
}
