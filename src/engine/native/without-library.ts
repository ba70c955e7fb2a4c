import { warn } from "../../util/warn.ts"

let said = false

/** Says why a GPU's products do without cuBLASLt: once a process, and not to whoever has chosen so. */
export function warnWithoutLibrary(reason: string | undefined): void {
  if (reason === undefined || said || process.env.GIGPO_CUBLASLT === "off") return
  said = true
  warn(
    `Matrix products run on gigpo's own kernels, because no cuBLASLt can be used (${reason}). ` +
      'Install it (the CUDA toolkit, or pip\'s nvidia-cublas), name its folder in GIGPO_CUBLASLT, or choose to do without: "off".',
  )
}
