import { createHash } from "node:crypto"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

// What is examined of an addon before it becomes part of a package.
const root = fileURLToPath(new URL("../..", import.meta.url))
const script = (name: string) => import(new URL(`../../scripts/${name}.mjs`, import.meta.url).href)
const { readMachO } = await script("mach-o")
const { assertGood, examineBinary } = await script("package-binary")

const words = (...numbers: readonly number[]) => Buffer.from(new Uint32Array(numbers).buffer)
const bigEndian = (...numbers: readonly number[]) => words(...numbers).swap32()

/** A library for macOS with one symbol of each kind, signed ad hoc as a linker does: pages of 4 KiB with their SHA-256. */
function library(): Buffer {
  const [names, page] = ["\0_given\0_wanted\0_hidden\0", 4096]
  const symbol = (offset: number, type: number, description: number) =>
    Buffer.concat([
      words(offset),
      Buffer.from([type, 0]),
      Buffer.from(new Uint16Array([description]).buffer),
      Buffer.alloc(8),
    ])
  const symbols = [symbol(1, 0x0f, 0), symbol(8, 0x01, 0xfe00), symbol(16, 0x1f, 0)]
  const path = Buffer.alloc(32)
  path.write("/usr/lib/libSystem.B.dylib")
  const [signature, table] = [2 * page, page]
  const commands = [
    [words(0x32, 24, 1, (11 << 16) | (3 << 8), 0, 0)],
    [words(0xc, 56, 24, 0, 0, 0), path],
    [words(0x2, 24, table, symbols.length, table + 16 * symbols.length, names.length)],
    [words(0x1d, 16, signature, 200)],
  ].map((parts) => Buffer.concat(parts))
  const header = words(0xfeedfacf, 0x100000c, 0, 6, commands.length, Buffer.concat(commands).length, 0, 0)
  const pages = Buffer.alloc(2 * page)
  Buffer.concat([header, ...commands]).copy(pages)
  Buffer.concat([...symbols, Buffer.from(names)]).copy(pages, table)
  const hash = (start: number) =>
    createHash("sha256")
      .update(pages.subarray(start, start + page))
      .digest()
  const kinds = Buffer.from([32, 2, 0, 12])
  const directory = [
    bigEndian(0xfade0c02, 108, 0x20400, 2, 44, 40, 0, 2, 2 * page),
    kinds,
    bigEndian(0),
    hash(0),
    hash(page),
  ]
  return Buffer.concat([pages, bigEndian(0xfade0cc0, 200, 1, 0, 20), ...directory])
}

describe("a library for macOS", () => {
  it("is read: processor, system, libraries, symbols, signature", () => {
    expect(readMachO(library())).toEqual({
      cpu: "arm64",
      libraries: ["/usr/lib/libSystem.B.dylib"],
      searchPaths: [],
      oldestMacos: "11.3",
      exported: ["given"],
      lookedUp: ["wanted"],
      signature: "ad hoc",
    })
  })

  it("that was changed after it was signed is rejected, as the kernel would", () => {
    const changed = library()
    changed[6000]! ^= 1
    expect(() => readMachO(changed)).toThrow("The code signature does not match page 1.")
  })

  it("of another kind is rejected", () => {
    expect(() => readMachO(Buffer.from("\x7fELF\x02\x01\x01\0"))).toThrow(/no 64-bit Mach-O/)
  })
})

describe.runIf(process.platform === "linux")("an addon for Linux", () => {
  // This machine's own build needs this machine's C++ library, and exports what other libraries could take.
  const examine = (platform: string) => examineBinary(join(root, "build/Release/gigpo.node"), root, ["sm_80"], platform)
  const own = `linux-${process.arch}`

  it("that works on this machine only is rejected, with all reasons", () => {
    const examined = examine(own)
    expect(examined.bytes).toBeGreaterThan(1e6)
    expect(examined.needed).toContain("libc.so.6")
    expect(examined.problems).toContain("needs libstdc++.so.6")
    expect(() => assertGood(examined)).toThrow(/does not work on other machines: it needs libstdc\+\+\.so\.6/)
  })

  it("of another processor or C library is rejected", () => {
    const other = process.arch === "x64" ? ["linux-arm64", "AArch64"] : ["linux-x64", "X86-64"]
    expect(examine(other[0]!).problems).toContain(`is not for ${other[1]}`)
    expect(examine(`${own}-musl`).problems.join()).toMatch(/needs .*libc\.so\.6/)
  })
})
