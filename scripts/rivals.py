"""Eigen, PETSc and the GAP Benchmark Suite, compiled as programs, for the other scripts of this folder.

`--eigen DIR` names the folder of Eigen's headers, `--petsc PREFIX` an installed or built PETSc (with the folder of the
architecture, as in petsc-3.26.1/arch-opt), and `--gap DIR` the sources of the GAP Benchmark Suite. Rivals without their option
are left out.
"""
import atexit, json, os, shutil, subprocess, tempfile

try:
    import numpy as np
except ImportError:  # the options work without it
    np = None

HERE = os.path.dirname(os.path.abspath(__file__))
folder = None


def add_options(parser):
    parser.add_argument("--eigen", default="", help="folder of Eigen's headers, such as /usr/include/eigen3")
    parser.add_argument("--petsc", default="", help="folder of a PETSc, which contains lib and include")


def workplace():
    global folder
    if folder is None:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, True)
    return folder


def compiled(name, command):
    program = os.path.join(workplace(), name)
    if not os.path.exists(program):
        subprocess.run([*command, "-o", program], check=True)
    return program


def file_of(system, ending, write):
    """Returns the file of a matrix in the format of a rival; writes it on first use."""
    path = os.path.join(workplace(), "".join(c if c.isalnum() else "-" for c in system) + ending)
    if not os.path.exists(path):
        with open(path, "wb") as f:
            write(f)
    return path


def said(command, **environment):
    """Runs a program and returns the lines that it prints."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0 or not done.stdout:
        raise RuntimeError(done.stderr.strip()[-500:])
    return done.stdout.splitlines()


def answer(command, **environment):
    lines = [line for line in said(command, **environment) if line.startswith("{")]
    return json.loads(lines[-1])


class Eigen:
    """Preconditioners: none, jacobi, icc."""

    def __init__(self, headers, threads):
        flags = ["-O3", "-march=native", "-fopenmp", "-DNDEBUG", "-I", headers]
        self.program = compiled("eigen", ["g++", *flags, os.path.join(HERE, "native", "eigen.cpp")])
        self.threads = threads
        self.name = f"Eigen ({threads} threads)"

    def ask(self, system, a, b, what):
        def write(f):
            np.array([a.shape[0], a.nnz], "<i8").tofile(f)
            for array, kind in (a.indptr, "<i4"), (a.indices, "<i4"), (a.data, "<f8"), (b, "<f8"):
                array.astype(kind).tofile(f)
        return answer([self.program, file_of(system, ".eigen", write), what], OMP_NUM_THREADS=str(self.threads))

    def solve(self, system, a, b, precond="none"):
        return self.ask(system, a, b, precond)

    def product(self, system, a, b):
        return self.ask(system, a, b, "products")["ms"]


class Petsc:
    """Preconditioners are given as PETSc options, such as "-pc_type jacobi"; matrices are in rows, or in blocks of one size."""

    def __init__(self, prefix, threads, block=1):
        # The headers of a PETSc in its own source tree are in two folders.
        include = [f"-I{os.path.join(path, 'include')}" for path in (prefix, os.path.dirname(os.path.abspath(prefix)))]
        lib = os.path.join(prefix, "lib")
        command = ["mpicc", "-O3", *include, os.path.join(HERE, "native", "petsc.c"), f"-L{lib}", f"-Wl,-rpath,{lib}"]
        self.program = compiled("petsc", [*command, "-lpetsc", "-lm"])
        self.processes, self.block = threads, block
        self.name = f"PETSc {'BAIJ' if block > 1 else 'AIJ'} ({threads} processes)"

    def ask(self, system, a, b, options):
        def write(f):
            np.array([1211216, *a.shape, a.nnz], ">i4").tofile(f)
            np.diff(a.indptr).astype(">i4").tofile(f)
            a.indices.astype(">i4").tofile(f)
            a.data.astype(">f8").tofile(f)
            np.array([1211214, len(b)], ">i4").tofile(f)
            b.astype(">f8").tofile(f)
        run = ["mpirun", "--allow-run-as-root", "--bind-to", "core", "-n", str(self.processes), self.program]
        kind = ["-mat_type", "baij", "-mat_block_size", str(self.block)] if self.block > 1 else ["-mat_type", "aij"]
        file = file_of(system, ".petsc", write)
        return answer([*run, file, *kind, *options.split()], OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

    def solve(self, system, a, b, precond="-pc_type none"):
        return self.ask(system, a, b, precond)

    def product(self, system, a, b):
        return self.ask(system, a, b, "-products")["ms"]


class Gap:
    """PageRank of the GAP Benchmark Suite: pr (Gauss-Seidel) or pr_spmv, in its single precision or changed to double."""

    def __init__(self, sources, threads, program="pr", double=True):
        flags = ["-O3", "-march=native", "-fopenmp", "-I", os.path.join(sources, "src")]
        flags += ["-DJACOBI"] * (program == "pr_spmv") + ["-DDOUBLE"] * double
        name = f"gap-{program}-{'f64' if double else 'f32'}"
        self.program = compiled(name, ["g++", *flags, os.path.join(HERE, "native", "gap.cpp")])
        self.threads = threads

    def ranks(self, system, links, into, tolerance, most):
        """Returns ranks, seconds and iterations. `links` has the links by source vertex, `into` by target vertex."""
        def write(f):
            np.array([True]).tofile(f)
            np.array([links.nnz, links.shape[0]], "<i8").tofile(f)
            for side in links, into:
                side.indptr.astype("<i8").tofile(f)
                side.indices.astype("<i4").tofile(f)
        file, ranks = file_of(system, ".sg", write), os.path.join(workplace(), "ranks")
        command = [self.program, file, repr(tolerance), str(most), ranks]
        *lines, last = said(command, OMP_NUM_THREADS=str(self.threads))
        # Each iteration prints its number and its step.
        iterations = sum(line.split()[0].isdigit() for line in lines if line)
        return np.fromfile(ranks), json.loads(last)["seconds"], iterations
