"""Import before torch. Lets MKL, torch's matrix library, use AVX-512 on a processor that is not Intel's.

MKL asks whether the processor is made by Intel, not what it can do, and takes AVX2 code where it is not. On an AMD
processor with AVX-512 that halves torch's speed. With GIGPO_BENCH_MKL=avx512 the question is answered with yes (needs a
C compiler; MKL_ENABLE_INSTRUCTIONS=AVX2 then still holds it to less), so that torch can be measured at its best as well as the way it is installed.
"""

import ctypes
import os
import subprocess
import tempfile

MKL = os.environ.get("GIGPO_BENCH_MKL", "as installed")

if MKL == "avx512":
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/answer.so"
        source = "int mkl_serv_intel_cpu_true(void) { return 1; }"
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=source, text=True, check=True)
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
elif MKL != "as installed":
    raise SystemExit(f'GIGPO_BENCH_MKL is "{MKL}"; set it to avx512, or leave it unset')
