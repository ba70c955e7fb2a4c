// Blocks of tar archives, whatever they say: https://www.gnu.org/software/tar/manual/html_node/Standard.html

export function block({ name, size = 0, type = "0", link = "" }) {
  const bytes = Buffer.alloc(512)
  bytes.write(name.slice(0, 100), 0)
  bytes.write("0000644", 100)
  const written = typeof size === "number" ? size.toString(8).padStart(11, "0") : size
  Buffer.from(written).copy(bytes, 124, 0, 12)
  bytes.write("00000000000", 136)
  bytes.write(type, 156)
  bytes.write(link, 157)
  bytes.write("ustar\u000000", 257)
  return withChecksums(bytes)
}

export function padded(bytes) {
  return Buffer.concat([bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)])
}

export function withChecksums(bytes) {
  const fixed = Buffer.from(bytes)
  for (let at = 0; at + 512 <= fixed.length; at += 512) {
    if (fixed.toString("latin1", at + 257, at + 262) !== "ustar") continue
    fixed.write(" ".repeat(8), at + 148)
    const sum = fixed.subarray(at, at + 512).reduce((so, byte) => so + byte, 0)
    fixed.write(`${sum.toString(8).padStart(6, "0")}\u0000 `, at + 148)
  }
  return fixed
}
