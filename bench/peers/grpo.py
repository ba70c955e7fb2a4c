"""Iterations of TRL's GRPOTrainer: prompts of random tokens, replies of a fixed length, a reward from their first token.

The seconds of each iteration but the first, which allocates: generation, rewards, loss, backward, AdamW. Gradient checkpointing,
logging and saving are off; generation is transformers' own, which is what TRL uses on a CPU.
"""

import json
import os
import tempfile
import time

from model import build, parser

import datasets
import tokenizers
import torch
import transformers
import trl


def words_tokenizer(vocabulary: int) -> transformers.PreTrainedTokenizerFast:
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({str(i): i for i in range(vocabulary)}, unk_token="0"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="0", eos_token="1", unk_token="0")


class Clock(transformers.TrainerCallback):
    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_step_begin(self, *_: object, **__: object) -> None:
        self.start = time.perf_counter()

    def on_step_end(self, *_: object, **__: object) -> None:
        self.seconds.append(time.perf_counter() - self.start)


def main() -> None:
    options = parser(__doc__)
    for name, value in [("tasks", 48), ("members", 8), ("prompt", 64), ("reply", 32), ("steps", 4)]:
        options.add_argument(f"--{name}", type=int, default=value)
    flags = options.parse_args()
    datasets.disable_progress_bars()
    model = build(flags)
    tokens = torch.randint(2, flags.vocabulary, (flags.tasks * flags.steps, flags.prompt))
    prompts = datasets.Dataset.from_dict({"prompt": [" ".join(map(str, row)) for row in tokens.tolist()]})
    lengths: list[int] = []

    def reward(completion_ids: list[list[int]], **_: object) -> list[float]:
        lengths.extend(map(len, completion_ids))
        return [float(ids[0] % 2) for ids in completion_ids]

    with tempfile.TemporaryDirectory() as folder:
        settings = trl.GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            # All replies are sampled at once and make one update; a quarter of them is trained at a time, for memory's sake.
            per_device_train_batch_size=flags.tasks * flags.members // 4,
            gradient_accumulation_steps=4,
            steps_per_generation=4,
            num_generations=flags.members,
            max_completion_length=flags.reply,
            max_steps=flags.steps,
            learning_rate=1e-6,
            beta=0.0,
            gradient_checkpointing=False,
            optim="adamw_torch_fused",
            generation_kwargs={"min_new_tokens": flags.reply},  # no reply ends early
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        clock = Clock()
        trainer = trl.GRPOTrainer(model, reward, settings, train_dataset=prompts, processing_class=words_tokenizer(flags.vocabulary), callbacks=[clock])
        trainer.train()
    assert lengths == [flags.reply] * (flags.tasks * flags.members * flags.steps), "replies are not of the length that was asked for"
    for seconds in clock.seconds[1:]:
        print(json.dumps({"bench": "grpo", "peer": f"trl {trl.__version__}", "seconds": round(seconds, 4)}), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
