"""Plays commands in ALFWorld's own environment, games found by its own loader.

Reads one JSON object from standard input: {"split": <folder of a split>, "episodes": [{"game", "commands", "steps"}]}; writes one a line:
first how many games the loader found, then for each episode what it answered, moment by moment.
"""
import contextlib
import json
import os
import sys
import time

from alfworld.agents.environment.alfred_tw_env import AlfredTWEnv

given = json.load(sys.stdin)
config = {
    "dataset": {"eval_ood_data_path": given["split"], "num_eval_games": -1},
    "env": {
        "goal_desc_human_anns_prob": 0,
        "task_types": [1, 2, 3, 4, 5, 6],
        "domain_randomization": False,
        "expert_type": "handcoded",
    },
    "general": {"training_method": "dqn"},
    "rl": {"training": {"max_nb_steps_per_episode": given["steps"]}},
}


def tell(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


with contextlib.redirect_stdout(sys.stderr):
    games = AlfredTWEnv(config, train_eval="eval_out_of_distribution")
found = sorted(os.path.relpath(path, given["split"]).replace(os.sep, "/") for path in games.game_files)
tell({"found": found})
for episode in given["episodes"]:
    games.game_files = [os.path.join(given["split"], episode["game"])]
    env = games.init_env(batch_size=1)
    (text,), infos = env.reset()
    moments = [{"text": text, "actions": infos["admissible_commands"][0], "score": 0, "done": False, "won": infos["won"][0]}]
    started = time.perf_counter()
    for command in episode["commands"]:
        (text,), (score,), (done,), infos = env.step([command])
        actions, won = infos["admissible_commands"][0], infos["won"][0]
        moments.append({"text": text, "actions": actions, "score": score, "done": bool(done), "won": won})
    tell({"moments": moments, "seconds": time.perf_counter() - started})
    env.close()
