// Rival: AMGCL. Solves with the matrix in FILE by CG with smoothed aggregation, writes x to ANSWER (f64), and prints JSON.
// OMP_NUM_THREADS sets the number of threads.
//
//   g++ -std=c++17 -O3 -march=native -fopenmp -DNDEBUG -DAMGCL_NO_BOOST -I AMGCL amgcl.cpp -o amgcl
//   amgcl FILE f64|f32 RTOL ANSWER [BLOCK]   one solve of A x = b to ||b - A x|| <= RTOL ||b||, with levels in this precision and
//                                            BLOCK unknowns for each node
//
// FILE holds the numbers of rows and entries (i64), then the CSR arrays row_ptr and columns (i32), values and b (f64).
#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/cg.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using Double = amgcl::backend::builtin<double>;
using Vector = std::vector<double>;

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class T> static std::vector<T> read(FILE *file, size_t count) {
    std::vector<T> values(count);
    if (fread(values.data(), sizeof(T), count, file) != count) {
        fprintf(stderr, "the file ends too early\n");
        exit(2);
    }
    return values;
}

struct System {
    std::vector<ptrdiff_t> starts, columns;
    Vector values, b;

    double residual(const Vector &x) const {
        double of_residual = 0, of_b = 0;
        for (size_t row = 0; row < b.size(); row++) {
            double left = b[row];
            for (ptrdiff_t at = starts[row]; at < starts[row + 1]; at++)
                left -= values[at] * x[columns[at]];
            of_residual += left * left;
            of_b += b[row] * b[row];
        }
        return std::sqrt(of_residual / of_b);
    }
};

template <class Level> static Vector solve(const System &a, double tolerance, int block) {
    using Multigrid = amgcl::amg<Level, amgcl::coarsening::smoothed_aggregation, amgcl::relaxation::spai0>;
    using Solver = amgcl::make_solver<Multigrid, amgcl::solver::cg<Double>>;
    typename Solver::params options;
    options.solver.tol = tolerance;
    options.solver.maxiter = 10000;
    options.precond.coarsening.aggr.block_size = block;
    size_t n = a.b.size();
    Vector x(n, 0.0);
    double begin = now();
    auto matrix = std::tie(n, a.starts, a.columns, a.values);
    Solver solver(matrix, options);
    double ready = now();
    // The method multiplies by the matrix in double precision, whatever the levels have.
    auto [iterations, estimate] = solver(matrix, a.b, x);
    double end = now();
    (void)estimate;
    printf("{\"seconds_setup\": %.9g, \"seconds_solve\": %.9g, \"iterations\": %d, \"residual_true\": %.6e}\n",
           ready - begin, end - ready, int(iterations), a.residual(x));
    return x;
}

int main(int count, char **words) {
    FILE *file = count == 5 || count == 6 ? fopen(words[1], "rb") : nullptr;
    if (!file) {
        fprintf(stderr, "amgcl FILE f64|f32 RTOL ANSWER [BLOCK]\n");
        return 2;
    }
    auto sizes = read<long long>(file, 2);
    auto starts = read<int>(file, sizes[0] + 1), columns = read<int>(file, sizes[1]);
    System a{{starts.begin(), starts.end()}, {columns.begin(), columns.end()}, {}, {}};
    a.values = read<double>(file, sizes[1]);
    a.b = read<double>(file, sizes[0]);
    fclose(file);
    double tolerance = atof(words[3]);
    int block = count == 6 ? atoi(words[5]) : 1;
    bool single = std::string(words[2]) == "f32";
    if (!single && std::string(words[2]) != "f64") {
        fprintf(stderr, "levels are in f64 or f32\n");
        return 2;
    }
    Vector x = single ? solve<amgcl::backend::builtin<float>>(a, tolerance, block) : solve<Double>(a, tolerance, block);
    FILE *answer = fopen(words[4], "wb");
    if (!answer || fwrite(x.data(), sizeof(double), x.size(), answer) != x.size() || fclose(answer)) {
        fprintf(stderr, "%s cannot be written\n", words[4]);
        return 2;
    }
    return 0;
}
