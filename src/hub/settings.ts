import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { readIfThere } from "../files/regular-file.ts"
import { GigpoError } from "../util/errors.ts"
import { isLoopback } from "../util/key-address.ts"

/** Where models come from and go to, as the environment says: the variables of Python's huggingface_hub. */
export interface HubSettings {
  /** Address of the Hub, without a slash at its end. */
  readonly endpoint: string
  /** Folder of the cache, absolute. */
  readonly cache: string
  /** Access token. Undefined where there is none, or it must not leave this machine: the endpoint has plain http. */
  readonly token: string | undefined
  /** Whether the Hub must not be asked. */
  readonly offline: boolean
}

/**
 * Settings from HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, XDG_CACHE_HOME, HF_TOKEN (else the file token in HF_HOME, or HF_TOKEN_PATH) and
 * HF_HUB_OFFLINE.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an address or a token that cannot be one; `UNSAFE_PATH` or `IO` for the token's file
 */
export async function hubSettings(environment: NodeJS.ProcessEnv = process.env): Promise<HubSettings> {
  const { HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE } = environment
  const endpoint = readEndpoint(environment.HF_ENDPOINT)
  const home = hubHome(environment)
  const plain = endpoint.protocol === "http:" && !isLoopback(endpoint)
  return {
    endpoint: endpoint.href.replace(/\/+$/, ""),
    cache: hubCache(environment),
    token: plain ? undefined : await readToken(environment, home),
    offline: /^(1|on|yes|true)$/i.test(HF_HUB_OFFLINE || TRANSFORMERS_OFFLINE || ""),
  }
}

/** Folder of the cache: HF_HUB_CACHE, else hub in HF_HOME, else huggingface/hub in XDG_CACHE_HOME or ~/.cache. */
export function hubCache(environment: NodeJS.ProcessEnv = process.env): string {
  const { HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE } = environment
  return placed(HF_HUB_CACHE || HUGGINGFACE_HUB_CACHE || join(hubHome(environment), "hub"))
}

function hubHome({ HF_HOME, XDG_CACHE_HOME }: NodeJS.ProcessEnv): string {
  return placed(HF_HOME || join(XDG_CACHE_HOME || join(homedir(), ".cache"), "huggingface"))
}

function placed(path: string): string {
  return resolve(path.replace(/^~(?=$|[/\\])/, homedir()))
}

function readEndpoint(text: string | undefined): URL {
  const given = text?.trim() || "https://huggingface.co"
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "" && url.search === "") {
    url.hash = ""
    return url
  }
  throw new GigpoError(
    "BAD_ARGUMENT",
    "HF_ENDPOINT must be an address with http or https, without user name, password and query, such as https://huggingface.co.",
  )
}

/** The token is never shown. */
async function readToken(environment: NodeJS.ProcessEnv, home: string): Promise<string | undefined> {
  const path = environment.HF_TOKEN_PATH ? placed(environment.HF_TOKEN_PATH) : join(home, "token")
  const given = environment.HF_TOKEN?.trim()
  const token = given || (await readIfThere(path, 4096))?.trim()
  if (!token || /^[\x21-\x7e]+$/.test(token)) return token || undefined
  const what = given ? "HF_TOKEN" : path
  throw new GigpoError("BAD_ARGUMENT", `${what} is no access token: it has blanks or characters that no token has.`)
}
