import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const nvcc = spawnSync("nvcc", ["--version"]).error === undefined

/** What the build says of CUDA while it is configured, where the driver is what `driver` holds. */
describe.skipIf(process.platform !== "linux")("the CUDA kernels", () => {
  const scratch = mkdtempSync(join(tmpdir(), "cuda-choice-"))
  afterAll(() => rmSync(scratch, { recursive: true }))

  function configure(driver: string, build: string, ...options: readonly string[]): string {
    const env = { ...process.env, LD_LIBRARY_PATH: driver }
    const args = ["-S", root, "-B", join(scratch, build), ...options]
    return execFileSync("cmake", args, { encoding: "utf8", env, stdio: ["ignore", "pipe", "pipe"] })
  }

  /** In the real one's place, if there is one. */
  function makeDriver(name: string, capabilities: readonly number[]): string {
    const folder = join(scratch, name)
    mkdirSync(folder)
    const source = join(folder, "driver.c")
    writeFileSync(
      source,
      `static const int capabilities[] = {${[...capabilities, 0].join()}};
int cuInit(unsigned flags) { return 0; }
int cuDeviceGetCount(int* count) { *count = ${capabilities.length}; return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? capabilities[device] / 10 : capabilities[device] % 10;
  return 0;
}`,
    )
    execFileSync("cc", ["-shared", "-fPIC", "-o", join(folder, "libcuda.so.1"), source])
    return folder
  }

  /** A file that does not load hides a driver that does. */
  function hideDriver(): string {
    const folder = join(scratch, "none")
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "libcuda.so.1"), "no driver")
    return folder
  }

  it("are not built without a driver, and the message explains how to request them", () => {
    const said = configure(hideDriver(), "auto")
    expect(said).toMatch(/Building for the CPU alone: no NVIDIA driver found\. GIGPO_CUDA=ON builds/)
    expect(said).not.toMatch(/CUDA compiler/)
  })

  it.skipIf(!nvcc)(
    "are built on request or with a driver: for the GPUs of this machine, or for all GPUs if there are none or nvcc does not support one",
    () => {
      // One folder: nvcc is looked into once. What was chosen is forgotten, as in a folder of its own.
      const chosen = (driver: string, ...options: readonly string[]) =>
        configure(driver, "cuda", "-UCMAKE_CUDA_ARCHITECTURES", ...options).match(/the CUDA kernels for (.*)$/m)?.[1]
      const all = "80-real;90a-real;100-virtual"
      expect(chosen(hideDriver(), "-DGIGPO_CUDA=ON")).toBe(all)
      const driver = makeDriver("two-kinds", [90, 75, 90, 86])
      expect(chosen(driver, "-DGIGPO_CUDA=AUTO")).toBe("90a-real;86-real")
      expect(chosen(driver, "-DCMAKE_CUDA_ARCHITECTURES=80-real")).toBe("80-real")
      expect(chosen(driver, "-DGIGPO_PREBUILT=ON")).toBe(all)
      expect(chosen(makeDriver("unknown", [199]), "-DGIGPO_PREBUILT=OFF")).toBe(all)
      expect(chosen(makeDriver("no-gpu", []))).toBe(all)
      expect(chosen(hideDriver())).toBeUndefined()
    },
    300_000,
  )
})
