"""Grouping equal states, two ways in Python.

`dict`: one dictionary a task, state to group number; the least that plain Python can do.
`verl-agent method`: what the reference implementation of GiGPO does (an independent rewrite): for every task it finds
its rows with numpy.where over an array of task names, lists the rows of each distinct observation in a dictionary, and
gives every list a fresh uuid. The search makes it quadratic in the number of tasks.

A task has 8 episodes of 50 steps: 400 states, drawn from 160. Python remembers the hash of a string once it was taken,
so every repeat gets new objects, made outside the timed part.
"""

import argparse
import random
import uuid

import numpy

from measure import measure, report

STEPS_OF_A_TASK = 400
DISTINCT = 160


def make_states(count: int, size: int) -> tuple[list[int], list[str]]:
    """Task and state of every row. States of a task share a long beginning, as observations do."""
    random.seed(0)
    letters = "abcdefghijklmnopqrstuvwxyz      "
    tasks, states = [], []
    for task in range(count // STEPS_OF_A_TASK):
        opening = "".join(random.choices(letters, k=size - 100))
        pool = [opening + "".join(random.choices(letters, k=100)) for _ in range(DISTINCT)]
        tasks += [task] * STEPS_OF_A_TASK
        states += random.choices(pool, k=STEPS_OF_A_TASK)
    return tasks, states


def group_dict(tasks: list[int], states: list[bytes]) -> list[int]:
    tables: list[dict[bytes, int]] = [{} for _ in range(tasks[-1] + 1)]
    groups, following = [], 0
    for task, state in zip(tasks, states):
        group = tables[task].setdefault(state, following)
        following += group == following
        groups.append(group)
    return groups


def group_reference(names: numpy.ndarray, states: numpy.ndarray) -> numpy.ndarray:
    groups = numpy.empty(len(states), dtype=object)
    sizes = []
    for name in numpy.unique(names):
        clusters: dict[str, list[int]] = {}
        for row in numpy.where(names == name)[0]:
            clusters.setdefault(states[row], []).append(row)
        for rows in clusters.values():
            label = str(uuid.uuid4())
            sizes.append(len(rows))
            for row in rows:
                groups[row] = label
    assert sum(sizes) == len(states)
    return groups


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--states", type=int, nargs="*", default=[6_400, 400_000])
    options.add_argument("--size", type=int, default=500, help="bytes of a state")
    flags = options.parse_args()

    for count in flags.states:
        tasks, states = make_states(count, flags.size)
        large = count > 50_000
        fresh: list[bytes] = []
        labels: list[str] = []
        identities = [str(uuid.uuid4()) for _ in range(tasks[-1] + 1)]
        names = numpy.array([identities[task] for task in tasks], dtype=object)
        observations = numpy.empty(len(states), dtype=object)

        def fresh_bytes() -> None:
            fresh[:] = [state.encode() for state in states]

        def fresh_strings() -> None:
            observations[:] = [state.encode().decode() for state in states]

        def run_reference() -> None:
            labels[:] = group_reference(names, observations)

        by_dict = measure(lambda: group_dict(tasks, fresh), 5 if large else 21, 1 if large else 3, fresh_bytes)
        # Once where the quadratic search takes seconds.
        by_reference = measure(run_reference, 1 if large else 11, 0 if large else 2, fresh_strings)

        groups = max(group_dict(tasks, fresh)) + 1
        assert len(set(labels)) == groups
        sizes = {"states": len(states), "bytes": flags.size, "tasks": tasks[-1] + 1, "groups": groups}
        report("anchors", "python dict", by_dict, **sizes)
        report("anchors", "verl-agent method", by_reference, **sizes)


if __name__ == "__main__":
    main()
