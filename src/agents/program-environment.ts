import { field } from "../options/field.ts"
import { GigpoError } from "../util/errors.ts"
import { visible } from "../util/visible.ts"

// Environment variables that are passed to a program. The trainer's environment may contain keys of other services (an
// engine, a tracking server, a cloud), and a tool driven by a model can read whatever the program has.

/**
 * Variables that programs need to run: paths of programs and libraries, user, language, time zone, terminal,
 * certificates and proxies.
 */
const plain =
  "PATH HOME USER LOGNAME SHELL PWD LANG LANGUAGE TZ TMPDIR TMP TEMP TERM COLORTERM NO_COLOR FORCE_COLOR LD_LIBRARY_PATH " +
  "VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME NVM_DIR NODE_PATH NODE_OPTIONS " +
  "NODE_ENV NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE HTTP_PROXY HTTPS_PROXY ALL_PROXY " +
  "http_proxy https_proxy all_proxy CUDA_VISIBLE_DEVICES OMP_NUM_THREADS"
const plainNames = new Set(plain.split(" "))
/** Prefixes of further such variables. */
const plainStarts = /^(LC|XDG|DYLD|PYTHON)[A-Z_]*$/
/** Address with a user name or password, as in proxy settings. */
const withPassword = /\/\/[^/\s]*@/
const name = /^[A-Za-z_][A-Za-z0-9_]*$/

type Given = "clean" | "inherit" | readonly string[]

export const environmentField = field<Given, string>(
  "clean",
  "Environment variables passed to the program: clean (those that programs need to run, without keys), inherit (all of " +
    "them), or a list of additional names besides those of clean: [SEARCH_API_KEY].",
  (value) =>
    value === "clean" || value === "inherit" || (Array.isArray(value) && value.every((one) => name.test(one)))
      ? undefined
      : 'must be "clean", "inherit" or a list of variable names',
)

/** @throws GigpoError `BAD_ARGUMENT` if the list names a variable that is not set. */
export function checkEnvironment(given: Given): void {
  const missing = Array.isArray(given) ? given.find((one) => process.env[one] === undefined) : undefined
  if (missing === undefined) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    `agent.environment names ${visible(missing)}, which is not set: export it, or remove it from the list.`,
  )
}

/** Variables that are passed on. */
export function passedOn(given: Given): NodeJS.ProcessEnv {
  if (given === "inherit") return { ...process.env }
  const isPlain = (key: string, value: string) =>
    (plainNames.has(key) || plainStarts.test(key)) && !withPassword.test(value)
  const passes = (key: string, value = "") => given.includes(key) || isPlain(key, value)
  return Object.fromEntries(Object.entries(process.env).filter(([key, value]) => passes(key, value)))
}
