import { field } from "../options/field.ts"
import { GigpoError } from "../util/errors.ts"
import { visible } from "../util/visible.ts"

// Which variables of the trainer's environment a program gets. The trainer holds keys of other services (an engine's, a tracking
// server's, a cloud's), and a tool that a model drives reads whatever the program has.

/** What a program needs to run at all: where programs and libraries are, the user, language, time zone, terminal, certificates, proxies. */
const plain =
  "PATH HOME USER LOGNAME SHELL PWD LANG LANGUAGE TZ TMPDIR TMP TEMP TERM COLORTERM NO_COLOR FORCE_COLOR LD_LIBRARY_PATH " +
  "VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME NVM_DIR NODE_PATH NODE_OPTIONS " +
  "NODE_ENV NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE HTTP_PROXY HTTPS_PROXY ALL_PROXY " +
  "http_proxy https_proxy all_proxy CUDA_VISIBLE_DEVICES OMP_NUM_THREADS"
const plainNames = new Set(plain.split(" "))
/** Groups of such variables, by how their names begin. */
const plainStarts = /^(LC|XDG|DYLD|PYTHON)[A-Z_]*$/
/** An address with a user's name or password, as those of proxies may be. */
const withPassword = /\/\/[^/\s]*@/
const name = /^[A-Za-z_][A-Za-z0-9_]*$/

type Given = "clean" | "inherit" | readonly string[]

export const environmentField = field<Given, string>(
  "clean",
  "Which variables of the trainer's environment the program gets: clean (what programs need to run, and no keys), inherit (all of " +
    "them), or a list of names that it gets besides those of clean: [SEARCH_API_KEY].",
  (value) =>
    value === "clean" || value === "inherit" || (Array.isArray(value) && value.every((one) => name.test(one)))
      ? undefined
      : 'must be "clean", "inherit" or a list of names of variables',
)

/** @throws GigpoError `BAD_ARGUMENT` where the list names a variable that is not set. */
export function checkEnvironment(given: Given): void {
  const missing = Array.isArray(given) ? given.find((one) => process.env[one] === undefined) : undefined
  if (missing === undefined) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    `The agent's environment names ${visible(missing)}, which is not set: export it, or remove it from the list.`,
  )
}

/** The variables that are passed on. */
export function passedOn(given: Given): NodeJS.ProcessEnv {
  if (given === "inherit") return { ...process.env }
  const isPlain = (key: string, value: string) =>
    (plainNames.has(key) || plainStarts.test(key)) && !withPassword.test(value)
  const passes = (key: string, value = "") => given.includes(key) || isPlain(key, value)
  return Object.fromEntries(Object.entries(process.env).filter(([key, value]) => passes(key, value)))
}
