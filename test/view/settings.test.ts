import { expect, it } from "vitest"
import { resolveConfig } from "../../src/cli/config/resolve.ts"
import { environmentNames } from "../../src/environment/registry.ts"
import { settingsOf } from "../../src/view/settings.ts"

it("shows a configuration without its secrets", () => {
  const sk = `sk-${"x1".repeat(12)}`
  const settings = settingsOf({
    gigpo: "0",
    apiKey: "plain",
    microBatchTokens: 4096,
    tokenWeights: { thinkTags: ["think"] },
    environment: {
      ...{
        name: "openenv",
        url: "https://me:pass@env.example/x?api_key=abc&mode=fast#t",
        password: "",
        hf_token: ["a", "b"],
      },
      headers: [{ name: "x", "X-Api-Key": "abc" }, "Authorization: Bearer abcdefgh12345"],
    },
    agent: {
      command: ["node", "agent.mjs", "--api-key", "abc", "--token=abc", "--port", "80", "OPENAI_API_KEY=abc"],
      note: `use ${sk}, please`,
    },
    credentials: { user: "me", aws: { region: "here" } },
    training: { keyed: "yes", monkey: "banana", keepCheckpoints: 3 },
  })
  expect(settings).toEqual({
    ...{ gigpo: "0", apiKey: "[redacted]", microBatchTokens: 4096, "tokenWeights.thinkTags": '["think"]' },
    ...{ "credentials.user": "[redacted]", "credentials.aws.region": "[redacted]" },
    ...{ "training.keyed": "yes", "training.monkey": "banana", "training.keepCheckpoints": 3 },
    ...{
      "environment.name": "openenv",
      "environment.password": "",
      "environment.hf_token": '["[redacted]","[redacted]"]',
    },
    "environment.url": "https://[redacted]@env.example/x?api_key=[redacted]&mode=fast#t",
    "environment.headers": '[{"name":"x","X-Api-Key":"[redacted]"},"Authorization: Bearer [redacted]"]',
    "agent.command":
      '["node","agent.mjs","--api-key","[redacted]","--token=[redacted]","--port","80","OPENAI_API_KEY=[redacted]"]',
    "agent.note": "use [redacted], please",
  })
})

const secret = "hunter2Secret"
const base64 = Buffer.from(`me:${secret}`).toString("base64")
const shown = (value: unknown) => JSON.stringify(settingsOf({ gigpo: "0", agent: { command: value } }))

/** Arguments of a program, or a text, that hold the secret. */
const forms: readonly (string | readonly unknown[])[] = [
  ["--api-key", secret],
  [`--api-key=${secret}`],
  [`--api_key=${secret}`],
  ["--password", secret],
  ["--accessToken", secret],
  ["node", "agent.mjs", "-p", secret],
  ["mysql", "-u", "root", "-p", secret],
  ["mysqldump", "-u", "root", `-p${secret}`],
  ["/usr/bin/redis-cli", "-a", secret],
  [{ name: "x-api-key", value: secret }],
  [{ key: "Authorization", value: secret }],
  ["x-api-key", secret],
  ["curl", "-u", `me:${secret}`],
  ["curl", "--user", `me:${secret}`],
  ["curl", `--user=me:${secret}`],
  ["curl", "--proxy-user", `me:${secret}`],
  ["curl", "--oauth2-bearer", secret],
  ["-H", `Authorization: Bearer ${secret}`],
  ["-H", `authorization: ${secret}`],
  ["-H", `Proxy-Authorization: Basic ${base64}`],
  ["-H", `Authorization: Token token="${secret}", version=2`],
  ["-H", `x-api-key: ${secret}`],
  ["-H", `X-Auth-Token:${secret}`],
  [`--header=x-api-key: ${secret}`],
  ["x-api-key:", secret],
  ["-H", `Cookie: theme=dark; session=${secret}`],
  ["-H", `Set-Cookie: session=${secret}; Path=/`],
  `password: ${secret}`,
  `the password: "${secret}"`,
  `token: ${secret}`,
  `API_KEY=${secret}`,
  `export OPENAI_API_KEY="${secret}"; node agent.mjs`,
  `HF_TOKEN='${secret}' node agent.mjs`,
  ["env", `PGPASSWORD=${secret}`, "psql"],
  ["env", `MYSQL_PWD=${secret}`],
  `aws_secret_access_key = ${secret}`,
  `https://me:${secret}@host.example/x`,
  `https://${secret}@host.example/x`,
  `postgres://me:${secret}@host.example:5432/db`,
  `https://host.example/x?access_token=${secret}&mode=fast`,
  `https://host.example/x?mode=fast&sig=${secret}`,
  `https://host.example/x?X-Amz-Signature=${secret}`,
  `https://host.example/x#access_token=${secret}`,
  `Server=db;User Id=me;Password=${secret};`,
  `AccountName=me;AccountKey=${secret}==;`,
  `{"api_key": "${secret}", "n": 1}`,
  `{"headers": {"Authorization": "Bearer ${secret}"}}`,
  `{"auth": {"password": ["${secret}"]}}`,
  JSON.stringify({ body: JSON.stringify({ apiKey: secret }) }),
  ["-d", `{\\"apiKey\\": \\"${secret}\\"}`],
  ["sh", "-c", `curl -H 'x-api-key: ${secret}' https://host.example`],
  ["sh", "-c", `curl -H "Authorization: Bearer ${secret}" https://host.example`],
  ["sh", "-c", `curl -u me:${secret} https://host.example`],
  ["sh", "-c", `node agent.mjs --token ${secret} --verbose`],
  ["sh", "-c", `TOKEN=${secret} node agent.mjs`],
  { nested: { client_secret: secret } } as never,
  `Bearer ${secret}1`,
  `sk-${secret}${secret}`,
  `tml-${secret}${secret}`,
  `https://hooks.slack.com/services/T0/B0/${secret}`,
  `-----BEGIN RSA PRIVATE KEY-----\n${secret}\n-----END RSA PRIVATE KEY-----`,
]

it.each(forms.map((form) => [form]))("hides the secret in %j", (form) => {
  for (const [text, of] of [
    [secret, form],
    [base64, form],
    [secret, [form]], // among arguments
  ] as const)
    expect(shown(of)).not.toContain(text)
  expect(shown(form)).toContain("[redacted]")
})

it.each([
  [["node", "agent.mjs", "--port", "80", "--max-tokens", "128", "--tokenizer", "models/qwen"]],
  [["node", "agent.mjs", "--max_tokens=128", "--n-tokens=4", "--key-file", "keys/public", "--token-limit=big"]],
  [["docker", "run", "-p", "8080:80", "-p", "127.0.0.1:80:80/tcp", "-u", "1000:1000", "image:latest"]],
  [["mkdir", "-p", "runs/new"]],
  [["node", "-p", "1+1"]],
  [["node", "agent.mjs", "-print", "-a", "all"]],
  [[{ name: "token-mean", value: 3 }]],
  [["python", "-u", "agent.py", "--model", "qwen"]],
  ["https://host.example:8000/x?mode=fast&page=2#top"],
  ["Reply with the key: a door has one. The token: small. Basic Understanding of Bearer instruments."],
  ["Say <answer>x</answer>; use at most 128 tokens: no more."],
  ['{"max_tokens": 128, "stop": ["a"],   "temperature": 0.5}'],
  ["tokens"],
  ["token-mean"],
  ["you@host.example"],
  ["2026-01-01T00:00:00Z"],
  ["monkey=banana; author: me; passage=3; keyboard: yes"],
])("shows %j as it is", (value) => {
  expect(JSON.parse(shown(value))["agent.command"]).toBe(typeof value === "string" ? value : JSON.stringify(value))
})

it("hides nothing of a configuration that holds no secret", () => {
  for (const name of environmentNames) {
    const config = resolveConfig(
      `model: models/small\nenvironment: { name: ${name}${name === "tasks" ? ", tasks: t.jsonl" : ""} }\nmlflow: { experiment: a }\n`,
    )
    expect(JSON.stringify(settingsOf({ gigpo: "0", ...config }))).not.toContain("redacted")
  }
})

it.each(["a", "a=", "sk-", "-eyJ", "://", "key=", "--a ", '"', "\\", "x: ", "-u a:", "Authorization: ", " "])(
  "takes time in proportion to a text of %j alone",
  (part) => {
    const began = performance.now()
    shown([part.repeat(500_000 / part.length)])
    expect(performance.now() - began).toBeLessThan(10_000)
  },
)
