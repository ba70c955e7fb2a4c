import { expect, it } from "vitest"
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
