"""PyTorch and Hugging Face on the card, with the shapes of bench/cuda/engine.cu: to be run beside it.

    python3 bench/peers/on_card.py [--model 1.5b] [card] [log-probs] [head] [train] [decode]

Random weights in bf16. Training: forward and backward over rows of 1,024 tokens, as a batch [16, 1024] (all rows are full, so
packing would change nothing), eager and compiled, the loss over the tokens that the engine's benchmark trains on.
"""

import argparse
import statistics
import time

import torch
from transformers import AutoModelForCausalLM, Qwen2Config

SHAPES = {
    "tiny": dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                 vocab_size=512, tie_word_embeddings=True),
    "0.5b": dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
                 num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True),
    "1.5b": dict(hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12,
                 num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True),
    "3b": dict(hidden_size=2048, intermediate_size=11008, num_hidden_layers=36, num_attention_heads=16,
               num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True),
    "7b": dict(hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28,
               num_key_value_heads=4, vocab_size=152064, tie_word_embeddings=False),
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PEAK = 989e12  # dense bf16 of an H100 or H200


def synchronize() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def median_seconds(work, runs: int = 5) -> float:
    """After two to warm up."""
    times = []
    for run in range(runs + 2):
        synchronize()
        start = time.perf_counter()
        work()
        synchronize()
        if run >= 2:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def make_model(name: str):
    torch.manual_seed(0)
    config = Qwen2Config(max_position_embeddings=8192, rope_theta=1e6, rms_norm_eps=1e-6, **SHAPES[name])
    with torch.device(DEVICE):
        return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")


def operations(model, tokens: float, head_tokens: float, length: float) -> float:
    c = model.config
    head = c.vocab_size * c.hidden_size
    body = sum(p.numel() for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n and "lm_head" not in n)
    attention = 6 * c.num_hidden_layers * c.hidden_size * length
    return tokens * (6 * body + attention) + 6 * head * head_tokens


def card(_: str) -> None:
    n = 8192 if DEVICE == "cuda" else 256
    a = torch.randn(n, n, device=DEVICE, dtype=torch.bfloat16)
    seconds = median_seconds(lambda: a @ a.T)
    source = torch.empty(2**30 if DEVICE == "cuda" else 2**18, device=DEVICE, dtype=torch.bfloat16)
    target = torch.empty_like(source)
    copy = median_seconds(lambda: target.copy_(source))
    print(f"PyTorch {torch.__version__}: product {2 * n**3 / seconds / 1e12:.0f} TFLOP/s, copy {4 * source.numel() / copy / 1e12:.2f} TB/s")


def log_probs(name: str) -> None:
    rows, vocabulary = 8192 if DEVICE == "cuda" else 64, SHAPES[name]["vocab_size"]
    logits = torch.randn(rows, vocabulary, device=DEVICE, dtype=torch.bfloat16)
    tokens = torch.zeros(rows, 1, device=DEVICE, dtype=torch.long)

    def plain():
        return torch.log_softmax(logits.float(), -1).gather(1, tokens)

    compiled = torch.compile(plain)
    for label, work in (("eager", plain), ("compiled", compiled)):
        seconds = median_seconds(work)
        print(f"log-probs of {rows} rows, {label}: {1e3 * seconds:.2f} ms, {rows * vocabulary * 2 / seconds / 1e12:.2f} TB/s of logits")


def head(name: str) -> None:
    """Policy loss in chunks of rows, whose logits are computed again in the backward pass."""
    rows, h, v = 8192 if DEVICE == "cuda" else 64, SHAPES[name]["hidden_size"], SHAPES[name]["vocab_size"]
    hidden = torch.randn(rows, h, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
    table = (0.02 * torch.randn(v, h, device=DEVICE, dtype=torch.bfloat16)).requires_grad_()
    tokens = torch.ones(rows, dtype=torch.long, device=DEVICE)
    old = torch.full((rows,), -10.0, device=DEVICE)

    def chunk_loss(states, chosen, before):
        log_p = torch.log_softmax((states @ table.T).float(), -1).gather(1, chosen[:, None])[:, 0]
        ratio = (log_p - before).exp()
        return -torch.minimum(ratio, ratio.clamp(0.8, 1.2)).sum()

    for chunk in (rows, 1024):
        for label, function in (("eager", chunk_loss), ("compiled", torch.compile(chunk_loss))):

            def work():
                hidden.grad = table.grad = None
                for at in range(0, rows, chunk):
                    part = slice(at, at + chunk)
                    torch.utils.checkpoint.checkpoint(function, hidden[part], tokens[part], old[part], use_reentrant=False).backward()

            if DEVICE == "cuda":
                torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated() if DEVICE == "cuda" else 0
            seconds = median_seconds(work)
            peak = (torch.cuda.max_memory_allocated() - before) / 1e9 if DEVICE == "cuda" else 0
            print(f"head {rows} x {h} x {v}, chunks of {chunk}, {label}: {1e3 * seconds:.1f} ms = {6 * rows * h * v / seconds / 1e12:.0f} TFLOP/s, {peak:.1f} GB")


def train(name: str) -> None:
    count, length = (16, 1024) if DEVICE == "cuda" else (2, 32)
    model = make_model(name)
    tokens = torch.randint(0, model.config.vocab_size, (count, length), device=DEVICE)
    for label, function in (("eager", model), ("compiled", torch.compile(model))):
        for reply in (length - 1, length * 3 // 20):
            labels = tokens.clone()
            labels[:, : length - reply] = -100

            def work():
                model.zero_grad(set_to_none=True)
                # In parts that fit beside fp32 logits; the same sums.
                for part in range(0, count, 4):
                    function(input_ids=tokens[part : part + 4], labels=labels[part : part + 4]).loss.backward()

            seconds = median_seconds(work)
            flops = operations(model, count * length, count * reply, length)
            print(f"train {name}, {label}, {reply} of {length} tokens in the loss: {1e3 * seconds:.0f} ms, "
                  f"{count * length / seconds:.0f} tokens/s, MFU {100 * flops / seconds / PEAK:.1f} %")


def decode(name: str) -> None:
    batch, context, drawn = (128, 960, 128) if DEVICE == "cuda" else (8, 56, 16)
    model = make_model(name).eval()
    prompt = torch.randint(0, model.config.vocab_size, (batch, context), device=DEVICE)
    settings = dict(do_sample=True, temperature=1.0, top_k=0, pad_token_id=0, eos_token_id=None)
    for label, cache in (("dynamic cache", {}), ("static cache", {"cache_implementation": "static"})):
        with torch.no_grad():
            one = median_seconds(lambda: model.generate(prompt, max_new_tokens=1, **settings, **cache), 3)
            all_tokens = median_seconds(lambda: model.generate(prompt, max_new_tokens=drawn + 1, **settings, **cache), 3)
        print(f"decode {name}, {label}: {batch * drawn / (all_tokens - one):.0f} tokens/s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="1.5b", choices=SHAPES)
    parts = {"card": card, "log-probs": log_probs, "head": head, "train": train, "decode": decode}
    parser.add_argument("parts", nargs="*", default=list(parts))
    chosen = parser.parse_args()
    for part in chosen.parts:
        try:
            parts[part](chosen.model)
        except torch.OutOfMemoryError:
            print(f"{part}: out of memory")


if __name__ == "__main__":
    main()
