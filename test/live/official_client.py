"""What Python's own client does with a server of the Tinker API, and what it is told: one JSON object on standard output.

    python official_client.py <url> <rank> <seed>          the key: TINKER_API_KEY
"""

import json
import sys

import tinker
from tinker import types

url, rank, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
tokens = [(7 * i + 5) % 60 for i in range(10)]
# Of nine targets the first three are the prompt's.
learned = 6
mask = [0.0] * (9 - learned) + [1.0] * learned
advantages = [0.0, 0.0, 0.0, 1.0, -1.0, 0.5, 1.0, 1.0, -0.5]
adam = types.AdamParams(
    learning_rate=1e-2, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.0, grad_clip_norm=0.0
)


def datum(**inputs):
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={"target_tokens": tokens[1:], **inputs},
    )


def learn(client, loss, **inputs):
    result = client.forward_backward([datum(**inputs)], loss).result()
    client.optim_step(adam).result()
    return result.metrics["loss:sum"], list(result.loss_fn_outputs[0]["logprobs"].data)


def squares(_, log_probs):
    loss = -(log_probs[0][-learned:] ** 2).sum()
    return loss, {"squares": float(loss)}


told = {}
service = tinker.ServiceClient(base_url=url)
client = service.create_lora_training_client(base_model="tiny", rank=rank, seed=seed)
told["cross entropy"] = [learn(client, "cross_entropy", weights=mask)[0] for _ in range(3)]
_, sampled_by = learn(client, "cross_entropy", weights=mask)
told["log-probabilities"] = sampled_by[-learned:]
for loss in ("importance_sampling", "ppo"):
    told[loss] = learn(client, loss, logprobs=sampled_by, advantages=advantages)[0]
own = client.forward_backward_custom([datum(weights=mask)], squares).result()
client.optim_step(adam).result()
told["custom"] = own.metrics["squares"]

path = client.save_state("kept").result().path
told["after a save"] = {}
resumed = {
    "itself": client,
    "with moments": service.create_training_client_from_state_with_optimizer(path),
    "without": service.create_training_client_from_state(path),
}
for name, one in resumed.items():
    told["after a save"][name] = [learn(one, "cross_entropy", weights=mask)[0] for _ in range(2)]

sampler = client.save_weights_and_get_sampling_client()
prompt = types.ModelInput.from_ints(tokens[:4])
params = types.SamplingParams(max_tokens=6, temperature=1.0, seed=5)
[sequence] = sampler.sample(prompt, num_samples=1, sampling_params=params).result().sequences
told["sampled"] = {"tokens": list(sequence.tokens), "log-probabilities": list(sequence.logprobs)}
told["of a prompt"] = sampler.compute_logprobs(types.ModelInput.from_ints(tokens)).result()
print(json.dumps(told))
