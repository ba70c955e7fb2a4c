"""A randomly initialised Qwen2ForCausalLM of the shape given by flags."""

import argparse

from mkl import MKL  # before torch

import torch
import transformers
from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

PEER = f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"


def parser(description: str | None) -> argparse.ArgumentParser:
    """The flags that every program about a model has. The defaults make a model of 1.0 M parameters."""
    flags = argparse.ArgumentParser(description=description)
    for name, value in [
        ("hidden", 128),
        ("layers", 5),
        ("heads", 4),
        ("kv-heads", 2),
        ("intermediate", 352),
        ("vocabulary", 512),
        ("threads", 2),
        ("warmup", 2),
    ]:
        flags.add_argument(f"--{name}", type=int, default=value)
    flags.add_argument("--untied", action="store_true", help="an output head of its own")
    flags.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32", help="of weights and all else")
    flags.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    return flags


def build(flags: argparse.Namespace) -> Qwen2ForCausalLM:
    torch.set_num_threads(flags.threads)
    torch.manual_seed(0)
    config = Qwen2Config(
        hidden_size=flags.hidden,
        num_hidden_layers=flags.layers,
        num_attention_heads=flags.heads,
        num_key_value_heads=flags.kv_heads,
        intermediate_size=flags.intermediate,
        vocab_size=flags.vocabulary,
        tie_word_embeddings=not flags.untied,
    )
    model = Qwen2ForCausalLM._from_config(config, dtype=getattr(torch, flags.dtype), attn_implementation=flags.attention)
    model.generation_config = GenerationConfig()
    return model


def describe(model: Qwen2ForCausalLM, flags: argparse.Namespace) -> dict:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": parameters, "threads": flags.threads, "attention": flags.attention, "dtype": flags.dtype, "mkl": MKL}
