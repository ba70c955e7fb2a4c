// Frames of zstd as no encoder writes them.

/** Magic number, no content size, a window of 1 MiB. */
const head = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50]

export type Kind = "raw" | "rle" | "compressed"
export interface Block {
  readonly kind: Kind
  readonly bytes: readonly number[]
  /** What its header declares. Default: its bytes. */
  readonly size?: number
}

export function frame(blocks: readonly Block[], header: readonly number[] = head): Uint8Array {
  const parts = blocks.map(({ kind, bytes, size = bytes.length }, i) => {
    const value = (size << 3) | (["raw", "rle", "compressed"].indexOf(kind) << 1) | (i === blocks.length - 1 ? 1 : 0)
    return [value & 255, (value >> 8) & 255, value >> 16, ...bytes]
  })
  return Uint8Array.from([header, ...parts].flat())
}

/** 131,072 bytes of `1a 00`, in eleven: two literals and a copy of them. */
const pairs: Block = { kind: "compressed", bytes: [0x10, 0x1a, 0x00, 1, 0x54, 2, 2, 52, 0xfb, 0xff, 0x05] }

/** So many MiB of `1a 00`: messages of empty data. */
export const bomb = (mebibytes: number): Uint8Array => frame(Array(8 * mebibytes).fill(pairs))

/** As many sequences as a block may declare, each of 65,539 bytes, in so few that they hold no bits. */
export const endlessCopies: Uint8Array = frame([
  { kind: "compressed", bytes: [0x09, 0x61, 255, 0xff, 0xff, 0x54, 0, 0, 52, 0x01] },
])
