import { GigpoError } from "./errors.ts"

/** Whether an address is on this machine. */
export function isLoopback({ hostname }: URL): boolean {
  return /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])\.?$/i.test(hostname)
}

/**
 * Rejects to send a key over unencrypted http beyond this machine.
 *
 * @param key - name of the variable that holds the key, for the message
 * @param option - option that allows it
 * @throws GigpoError `BAD_ARGUMENT` without the key and without the part of the address after the host
 */
export function checkKeyAddress(address: URL, key: string, option: string): void {
  if (["https:", "wss:"].includes(address.protocol) || isLoopback(address)) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${key} would be sent to ${address.protocol}//${address.host} unencrypted. Give an address with ` +
      `${address.protocol === "ws:" ? "wss" : "https"}, or one on this machine (a tunnel by ` +
      `ssh). In a trusted network, ${option}.`,
  )
}
