import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { readIfThere } from "../files/regular-file.ts"
import { GigpoError } from "../util/errors.ts"
import { isLoopback } from "../util/key-address.ts"

/** Settings of the Hub and its cache, from the environment variables of Python's huggingface_hub. */
export interface HubSettings {
  /** Address of the Hub, without a trailing slash. */
  readonly endpoint: string
  /** Absolute path of the cache folder. */
  readonly cache: string
  /** Access token. Undefined where none is set, and for an endpoint with plain http on another machine, which must not receive it. */
  readonly token: string | undefined
  /** Whether requests to the Hub are forbidden. */
  readonly offline: boolean
}

/**
 * Reads the settings from HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, XDG_CACHE_HOME, HF_TOKEN (else the file HF_TOKEN_PATH, or `token` in HF_HOME)
 * and HF_HUB_OFFLINE.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid address or token; `UNSAFE_PATH` or `IO` for the file of the token
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

/** Returns the cache folder: HF_HUB_CACHE, else `hub` in HF_HOME, else `huggingface/hub` in XDG_CACHE_HOME or ~/.cache. */
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
    "HF_ENDPOINT must be an http or https URL without user name, password and query, such as https://huggingface.co.",
  )
}

/** Reads the access token. Error messages must not contain it. */
async function readToken(environment: NodeJS.ProcessEnv, home: string): Promise<string | undefined> {
  const path = environment.HF_TOKEN_PATH ? placed(environment.HF_TOKEN_PATH) : join(home, "token")
  const given = environment.HF_TOKEN?.trim()
  const token = given || (await readIfThere(path, 4096))?.trim()
  if (!token || /^[\x21-\x7e]+$/.test(token)) return token || undefined
  const what = given ? "HF_TOKEN" : path
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${what} is not a valid access token: it contains spaces or characters that are not printable ASCII.`,
  )
}
