import { createHash } from "node:crypto"
import { isIPv6 } from "node:net"

/**
 * Client identity by address: an IPv4 address, also if written as IPv6, or the first 64 bits of an IPv6 address, since
 * one machine owns all addresses with that prefix.
 */
export function clientAddress(address = ""): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(address)) return address
  const [head = "", tail] = address.split("%")[0]!.split("::")
  const groups = (part: string) => part.split(":").filter((group) => group !== "")
  const [first, last] = [groups(head), groups(tail ?? "")]
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length
  return `${[...first, ...Array.from({ length: zeros }, () => "0"), ...last].slice(0, 4).join(":")}::`
}

/** Client number for the engine, which shares its steps between clients. */
export function clientNumber(address: string): number {
  return createHash("sha256").update(address).digest().readUIntLE(0, 6)
}
