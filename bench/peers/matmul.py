"""float32 matrix products in torch (MKL or oneDNN), in the three forms that training needs.

    python matmul.py --threads 2 2048x352x128 1024x1408x512

A shape is MxNxK.
nt: x [M][K] times w [N][K] transposed (forward)
nn: dy [M][K] times w [K][N] (gradient of the input)
tn: dy [K][M] transposed times x [K][N] (gradient of the weight)
"""

import argparse

from mkl import MKL  # before torch

import torch

from measure import measure, report

SHAPES = ["2048x352x128", "1024x1408x512", "1024x512x1408", "1024x1024x1024", "64x1408x512"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shapes", nargs="*", default=SHAPES)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--repeats", type=int, default=15)
    flags = options.parse_args()
    torch.set_num_threads(flags.threads)
    torch.manual_seed(0)

    for shape in flags.shapes:
        m, n, k = (int(size) for size in shape.split("x"))
        operations = 2 * m * n * k
        inner = max(1, int(3e9 / operations))  # long enough for the clock that counts `otherCores`
        out = torch.empty(m, n)
        for form in ["nt", "nn", "tn"]:
            a = torch.randn(k, m).T if form == "tn" else torch.randn(m, k)
            b = torch.randn(n, k).T if form == "nt" else torch.randn(k, n)

            def run() -> None:
                torch.matmul(a, b, out=out)

            measurement = measure(run, flags.repeats, 3, inner=inner)
            speed = {"gigaflops": measurement.rate(operations / 1e9)}
            sizes = {"form": form, "m": m, "n": n, "k": k, "threads": flags.threads, "mkl": MKL}
            report("matmul", f"torch {torch.__version__.split('+')[0]}", measurement, **sizes, **speed)


if __name__ == "__main__":
    main()
