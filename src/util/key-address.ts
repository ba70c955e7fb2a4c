import { GigpoError } from "./errors.ts"

/** Whether what is sent to an address stays on this machine. */
export function isLoopback({ hostname }: URL): boolean {
  return /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|\[::1\])\.?$/i.test(hostname)
}

/**
 * Refuses to send a key over plain http, which is not encrypted, beyond this machine.
 *
 * @param key - what the message calls the key: the variable that holds it
 * @param option - which option allows it all the same
 * @throws GigpoError `BAD_ARGUMENT` that shows neither the key nor what follows the host
 */
export function checkKeyAddress(address: URL, key: string, option: string): void {
  if (["https:", "wss:"].includes(address.protocol) || isLoopback(address)) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${key} would be sent to ${address.protocol}//${address.host} unencrypted. Give an address with ${address.protocol === "ws:" ? "wss" : "https"}, or one of this machine (a tunnel through ` +
      `ssh); in a network that you trust, ${option}.`,
  )
}
