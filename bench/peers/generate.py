"""transformers' own generation: one batch of prompts of equal length, sampled at temperature 1 with its cache.

tokensPerSecond counts new tokens only; the time includes the prompts.
"""

from measure import measure, report
from model import PEER, build, describe, parser

import torch


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--prompt", type=int, default=96)
    options.add_argument("--new", type=int, default=32)
    options.add_argument("--repeats", type=int, default=5)
    flags = options.parse_args()

    model = build(flags).eval()
    prompts = torch.randint(flags.vocabulary, (flags.batch, flags.prompt))
    mask = torch.ones_like(prompts)

    def run() -> None:
        # No end token is set, so every row gets all its tokens; top_k=0 samples from the whole vocabulary.
        output = model.generate(
            prompts, attention_mask=mask, max_new_tokens=flags.new, do_sample=True, top_k=0, pad_token_id=0
        )
        assert output.shape == (flags.batch, flags.prompt + flags.new)

    measurement = measure(run, flags.repeats, flags.warmup)
    batch = {"batch": flags.batch, "prompt": flags.prompt, "new": flags.new}
    speed = {"tokensPerSecond": measurement.rate(flags.batch * flags.new)}
    report("generate", PEER, measurement, **describe(model, flags), **batch, **speed)


if __name__ == "__main__":
    main()
