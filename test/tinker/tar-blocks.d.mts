/** Header of a file, with a size as a number or as it is written. */
export function block(header: { name: string; size?: number | string | Buffer; type?: string; link?: string }): Buffer
/** Bytes of a file with the zeros that fill its last block. */
export function padded(bytes: Buffer): Buffer
/** Copy of an archive in which each header has the checksum of what it says. */
export function withChecksums(bytes: Buffer): Buffer
