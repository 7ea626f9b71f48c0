"""Rivals that are compiled programs (Eigen, PETSc, GAP), and graph libraries (GraphBLAS, NetworKit,
igraph): see rivals.py."""
import json, os, shutil, time

import numpy as np

from rivals import DAMPING, HERE, Missing, compiled, json_of, lines_of, module, of_solves, place, solves, workplace


def system_file(name, write):
    """Returns the file of a matrix and a vector in the format of a rival."""
    path = os.path.join(workplace(), name)
    with open(path, "wb") as f:
        write(f)
    return path


class Program:
    """A compiled program that multiplies and solves with the matrix and vector in a file."""

    def takes(self, a):
        if a.dtype != np.float64:
            raise Missing("its program is compiled for f64")

    def answer(self, found, file):
        found["x"] = np.fromfile(file)
        return found

    def products(self, a, x):
        self.takes(a)
        answer = os.path.join(workplace(), "answer")
        return self.answer(self.run(self.write(a, x), answer, "products"), answer)

    def solve(self, a, b, rtol, precond=None):
        self.takes(a)
        answer, file = os.path.join(workplace(), "answer"), self.write(a, b)
        runs, spent = [], time.monotonic()
        while len(runs) < 3 and (not runs or time.monotonic() - spent < 20):
            runs.append(self.run(file, answer, precond or self.none, rtol))
        whole = [run["seconds_solve"] for run in runs]
        found = of_solves(whole, None, runs[0]["iterations"])
        return self.answer({**found, "build_seconds": min(run["seconds_setup"] for run in runs)}, answer)


class Eigen(Program):
    """Preconditioners: none, jacobi, icc."""
    none = "none"

    def __init__(self, threads):
        headers = place("SOLVER_EIGEN", "the folder of Eigen's headers", "/usr/include/eigen3", "Eigen/Sparse")
        flags = ["-O3", "-march=native", "-fopenmp", "-DNDEBUG", "-I", headers]
        self.program = compiled("eigen", ["g++", *flags, os.path.join(HERE, "native", "eigen.cpp")])
        self.threads, self.name = threads, f"Eigen ({threads} threads)"
        self.version = f"Eigen {lines_of([self.program, 'version'])[0]}, {threads} threads"

    def write(self, a, b):
        def write(f):
            np.array([a.shape[0], a.nnz], "<i8").tofile(f)
            for array, kind in (a.indptr, "<i4"), (a.indices, "<i4"), (a.data, "<f8"), (b, "<f8"):
                array.astype(kind).tofile(f)
        return system_file("system.eigen", write)

    def run(self, file, answer, what, rtol=1e-8):
        return json_of([self.program, file, what, repr(rtol), answer], OMP_NUM_THREADS=str(self.threads))


class Amgcl(Eigen):
    """CG with smoothed aggregation, with levels in f64 or f32. A node has as many unknowns as a block has
    rows."""

    def __init__(self, threads, precision="f64"):
        headers = place("SOLVER_AMGCL", "the folder of AMGCL's headers", has="amgcl/amg.hpp")
        flags = ["-std=c++17", "-O3", "-march=native", "-fopenmp", "-DNDEBUG", "-DAMGCL_NO_BOOST", "-I", headers]
        self.program = compiled("amgcl", ["g++", *flags, os.path.join(HERE, "native", "amgcl.cpp")])
        self.threads, self.none = threads, precision
        self.name = f"AMGCL {precision} ({threads} threads)"
        self.version = f"AMGCL, levels in {precision}, {threads} threads"

    def solve(self, a, b, rtol, precond=None):
        from rivals import unknowns
        self.size = unknowns(a)
        return super().solve(a, b, rtol, precond)

    def run(self, file, answer, what, rtol=1e-8):
        if what == "products":
            raise Missing("its products are not called here")
        command = [self.program, file, what, repr(rtol), answer, str(self.size)]
        return json_of(command, OMP_NUM_THREADS=str(self.threads))


class Petsc(Program):
    """PETSc with a process for each thread of other programs. Preconditioners are options, such as "-pc_type
    jacobi". The matrix is in rows, or in blocks of one size; with a preconditioner it is in rows, and the
    size of the blocks is given, because GAMG refuses matrices in blocks."""
    none = "-pc_type none"

    def __init__(self, threads, blocks=None, precond=None):
        self.precond, self.none = precond, precond or self.none
        prefix = place("SOLVER_PETSC", "a folder of PETSc with lib and include", "/usr/lib/petsc", "lib")
        if not shutil.which("mpirun"):
            raise Missing("not installed: there is no mpirun")
        # The headers of a PETSc in its own source tree are in two folders.
        include = [f"-I{os.path.join(path, 'include')}" for path in (prefix, os.path.dirname(os.path.abspath(prefix)))]
        lib = os.path.join(prefix, "lib")
        name = "petsc" if os.path.exists(os.path.join(lib, "libpetsc.so")) else "petsc_real"
        command = ["mpicc", "-O3", *include, os.path.join(HERE, "native", "petsc.c"), f"-L{lib}", f"-Wl,-rpath,{lib}"]
        self.program = compiled("petsc", [*command, f"-l{name}", "-lm"])
        self.processes, self.blocks = threads, blocks
        self.form = "aij" if blocks is None or precond else "baij"
        self.name = f"PETSc {self.form.upper()} ({threads} processes)"
        version = json_of([self.program, "-version_only"])["version"]
        self.version = " ".join(filter(None, [f"PETSc {version} {self.form.upper()}", precond])) + f", {threads} processes"

    def write(self, a, b):
        from rivals import block_size, unknowns
        find = unknowns if self.precond else block_size
        self.size = 1 if self.blocks is None else int(self.blocks) if self.blocks else find(a)

        def write(f):
            np.array([1211216, *a.shape, a.nnz], ">i4").tofile(f)
            np.diff(a.indptr).astype(">i4").tofile(f)
            a.indices.astype(">i4").tofile(f)
            a.data.astype(">f8").tofile(f)
            np.array([1211214, len(b)], ">i4").tofile(f)
            b.astype(">f8").tofile(f)
        return system_file("system.petsc", write)

    def run(self, file, answer, what, rtol=1e-8):
        run = ["mpirun", "--allow-run-as-root", "--bind-to", "core", "-n", str(self.processes), self.program]
        form = "aij" if self.size == 1 else self.form
        kind = ["-mat_type", form, "-mat_block_size", str(self.size)]
        options = ["-products"] if what == "products" else what.split()
        command = [*run, file, answer, *kind, "-ksp_rtol", repr(rtol), *options]
        return json_of(command, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

    def answer(self, found, file):
        found["x"] = np.fromfile(file, ">f8", offset=8).astype(np.float64)  # after two numbers of 4 bytes
        return found


class Graph:
    """The links of a graph, by source and by target vertex."""

    def __init__(self, a):
        if a.nnz and not (a.data == 1).all():
            raise Missing("the links have weights")
        self.a, self.n, self.out = a, a.shape[0], np.diff(a.indptr)
        self.into = a.T.tocsr()
        self.sources = lambda kind: np.repeat(np.arange(self.n, dtype=kind), self.out)


class Gap:
    """PageRank of the GAP Benchmark Suite: pr (Gauss-Seidel) or pr-spmv, changed to double precision,
    or pr-f32, which is pr as it is, in single precision and to a step of 1e-4. The ranks lose the
    rank that reaches sinks."""

    def __init__(self, threads, program="pr"):
        sources = place("SOLVER_GAP", "the sources of the GAP Benchmark Suite", has="src/pr.cc")
        flags = ["-O3", "-march=native", "-fopenmp", "-I", os.path.join(sources, "src")]
        flags += ["-DJACOBI"] * (program == "pr-spmv") + ["-DDOUBLE"] * (program != "pr-f32")
        self.program = compiled(f"gap-{program}", ["g++", *flags, os.path.join(HERE, "native", "gap.cpp")])
        self.threads, self.tolerance = threads, 1e-4 if program == "pr-f32" else None
        how = "f32, to 1e-4" if self.tolerance else "made f64"
        self.version = f"GAP {program.removesuffix('-f32')} ({how}), drops sinks, {threads} threads"

    def ranks(self, a, tolerance):
        graph = Graph(a)

        def write(f):
            np.array([True]).tofile(f)
            np.array([a.nnz, graph.n], "<i8").tofile(f)
            for side in a, graph.into:
                side.indptr.astype("<i8").tofile(f)
                side.indices.astype("<i4").tofile(f)
        file, answer = system_file("graph.sg", write), os.path.join(workplace(), "ranks")
        command, whole = [self.program, file, repr(self.tolerance or tolerance), "1000", answer], []
        for _ in range(3):
            *lines, last = lines_of(command, OMP_NUM_THREADS=str(self.threads))
            whole.append(json.loads(last)["seconds"])
        # Each iteration prints its number and its step.
        iterations = sum(line.split()[0].isdigit() for line in lines if line)
        return of_solves(whole, np.fromfile(answer), iterations)


class GraphBlas:
    """SuiteSparse:GraphBLAS, in the form of LAGraph."""

    def __init__(self, threads):
        self.gb = module("graphblas", "python-graphblas")
        self.gb.init("suitesparse", blocking=True)
        self.gb.ss.config["nthreads"] = threads
        self.version = f"SuiteSparse:GraphBLAS (python-graphblas {self.gb.__version__}), {threads} threads"

    def ranks(self, a, tolerance):
        gb, graph = self.gb, Graph(a)
        from graphblas import Matrix, Vector, binary, monoid, semiring, unary
        began, n = time.perf_counter(), graph.n
        into = Matrix.ss.import_csr(nrows=n, ncols=n, indptr=graph.into.indptr.astype(np.uint64), is_iso=True,
                                    col_indices=graph.into.indices.astype(np.uint64), values=np.ones(1), sorted_cols=True)
        share = Vector.from_dense(np.where(graph.out > 0, DAMPING / np.maximum(graph.out, 1), 0))
        sinks = Vector.from_dense((graph.out == 0).astype(float))
        built = time.perf_counter() - began

        def solve():
            r, t = Vector.from_dense(np.full(n, 1 / n)), Vector(gb.dtypes.FP64, n)
            w = Vector(gb.dtypes.FP64, n)
            for iteration in range(1, 10_000):
                t, r = r, t
                w << binary.times(t & share)
                base = (1 - DAMPING + DAMPING * float(semiring.plus_times(t @ sinks).new().value)) / n
                r(mask=None)[:] << base
                r(accum=binary.plus) << semiring.plus_second(into @ w)
                t << binary.minus(t & r)
                t << unary.abs(t)
                if float(t.reduce(monoid.plus).new().value) <= tolerance:
                    break
            return r.to_dense(fill_value=0.0), iteration
        return {"build_seconds": built, **solves(solve)}


class NetworKit:
    def __init__(self, threads):
        self.nk = module("networkit")
        self.nk.setNumberOfThreads(threads)
        self.version = f"NetworKit {self.nk.__version__}, {threads} threads"

    def ranks(self, a, tolerance):
        nk, graph = self.nk, Graph(a)
        began = time.perf_counter()
        links = graph.sources(np.uint64), a.indices.astype(np.uint64)
        g = nk.GraphFromCoo(links, n=graph.n, directed=True, weighted=False)
        built = time.perf_counter() - began

        def solve():
            sinks = nk.centrality.SinkHandling.DistributeSinks
            p = nk.centrality.PageRank(g, damp=DAMPING, tol=tolerance, distributeSinks=sinks)
            p.norm = nk.centrality.Norm.L1_NORM
            p.run()
            return np.array(p.scores()), int(p.numberOfIterations())
        return {"build_seconds": built, **solves(solve)}


class Igraph:
    """PRPACK, which stops by its own rule and does not tell its iterations."""

    def __init__(self, threads):
        self.igraph = module("igraph")
        self.version = f"igraph {self.igraph.__version__} PRPACK, 1 thread"

    def ranks(self, a, tolerance):
        graph = Graph(a)
        began = time.perf_counter()
        edges = np.stack([graph.sources(np.int64), a.indices.astype(np.int64)], 1)
        g = self.igraph.Graph(n=graph.n, edges=edges, directed=True)
        built = time.perf_counter() - began
        return {"build_seconds": built,
                **solves(lambda: (np.array(g.pagerank(damping=DAMPING, implementation="prpack")), None))}
