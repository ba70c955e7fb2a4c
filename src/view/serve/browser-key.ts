import { stateKey } from "../../files/state-folder.ts"
import { keyDigest, newKey } from "../../http/key.ts"

/** Seconds for which a browser keeps the key: 30 days. */
const kept = 30 * 24 * 3600

/** Key of the browsers that have opened the page with its token, kept in a cookie. */
export interface BrowserKey {
  readonly value: string
  /** Name of the cookie. Cookies do not distinguish ports, so pages of other machines under the same host name need another one. */
  readonly cookie: string
  /** Value of the header Set-Cookie. Scripts cannot read the cookie, and no page of another site can send it. */
  readonly header: string
}

/**
 * Makes the key of the browsers.
 *
 * @param isRemembered - whether the key is that of this user in the state folder, so that browsers stay known after a restart; else it is new
 */
export async function browserKey(isRemembered: boolean): Promise<BrowserKey> {
  const value = (isRemembered ? await stateKey("view", true) : undefined) ?? newKey()
  const cookie = `gigpo-view-${keyDigest(value).slice(0, 8)}`
  const age = isRemembered ? `; Max-Age=${kept}` : ""
  return { value, cookie, header: `${cookie}=${value}; Path=/api/; HttpOnly; SameSite=Strict${age}` }
}
