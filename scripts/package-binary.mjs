// Examines a built addon for Linux: its requirements on the machine that loads it, and its GPU code.
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"

// Requirements of Node's own binaries from Node 18 on, except for the C++ library, which the addon contains.
const oldestGlibc = "2.28"
const libraries = ["libc", "libm", "libdl", "librt", "libpthread", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64"]
const exported = ["napi_register_module_v1", "node_api_module_get_api_version_v1"]

/**
 * Examines an addon.
 *
 * @param root - folder in which the addon was built; the addon must not contain its path
 * @param gpus - GPU architectures for which the addon must contain code
 */
export function examineBinary(file, root, gpus) {
  const dynamic = execFileSync("readelf", ["-dW", file], { encoding: "utf8" })
  const symbols = execFileSync("objdump", ["-T", file], { encoding: "utf8" }).split("\n")
  const defined = execFileSync("nm", ["-D", "--defined-only", "--format=just-symbols", file], { encoding: "utf8" })
  const needed = [...dynamic.matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(([, name]) => name)
  const glibc = symbols.flatMap((line) => line.match(/(?<=\(?GLIBC_)[\d.]+/) ?? []).sort(byVersion)
  const bytes = readFileSync(file)
  const found = { bytes: bytes.length, needed, glibc: glibc.at(-1) ?? "", gpu: gpuCode(bytes) }

  const problems = []
  const strange = needed.filter((name) => !libraries.includes(name.split(".so")[0]))
  if (strange.length > 0) problems.push(`needs ${strange.join(", ")}`)
  if (byVersion(found.glibc, oldestGlibc) > 0) {
    const newer = symbols.filter((line) => byVersion(line.match(/GLIBC_([\d.]+)/)?.[1] ?? "0", oldestGlibc) > 0)
    problems.push(
      `needs glibc ${found.glibc}; binding/prebuilt.cmake lacks ${newer.map((line) => line.split(" ").at(-1))}`,
    )
  }
  const extra = defined.split("\n").filter((name) => name !== "" && !exported.includes(name))
  if (extra.length > 0) problems.push(`exports ${extra.join(", ")}`)
  if (/\((RPATH|RUNPATH)\)/.test(dynamic)) problems.push("has a path to search libraries in")
  if (bytes.includes(root)) problems.push(`holds the path ${root}`)
  const missing = gpus.filter((name) => !found.gpu[name])
  if (missing.length > 0) problems.push(`holds no code for ${missing.join(", ")}`)
  return { ...found, problems }
}

function byVersion(a, b) {
  const [left, right] = [a.split(".").map(Number), b.split(".").map(Number)]
  return left[0] - right[0] || (left[1] ?? 0) - (right[1] ?? 0)
}

/** Size of the GPU code in bytes by architecture, as stored in the file. nvcc's containers have a header and entries, each with a header. */
function gpuCode(bytes) {
  const magic = Buffer.from([0x50, 0xed, 0x55, 0xba])
  const sizes = {}
  for (let start = bytes.indexOf(magic); start >= 0; start = bytes.indexOf(magic, start + 4)) {
    if (bytes.readUInt16LE(start + 4) !== 1 || bytes.readUInt16LE(start + 6) !== 16) continue
    const end = start + 16 + Number(bytes.readBigUInt64LE(start + 8))
    for (let entry = start + 16; entry < end; ) {
      const size = bytes.readUInt32LE(entry + 4) + Number(bytes.readBigUInt64LE(entry + 8))
      const kind = bytes.readUInt16LE(entry) === 1 ? "compute" : "sm" // PTX or machine code
      const specific = bytes.readBigUInt64LE(entry + 40) & 0x100000n ? "a" : ""
      const name = `${kind}_${bytes.readUInt32LE(entry + 28)}${specific}`
      sizes[name] = (sizes[name] ?? 0) + size
      entry += size
    }
  }
  return sizes
}
