// Rival: Eigen. Solves or multiplies with the matrix in FILE, and prints JSON. OMP_NUM_THREADS sets the number of threads.
//
//   g++ -O3 -march=native -fopenmp -DNDEBUG -I/usr/include/eigen3 eigen.cpp -o eigen
//   eigen FILE none|jacobi|icc   one solve by ConjugateGradient to ||b - A x|| <= 1e-8 ||b||
//   eigen FILE products          the fastest of the products that fit into 0.3 s
//
// FILE holds the numbers of rows and entries (i64), then the CSR arrays row_ptr and columns (i32), values and b (f64).
#include <Eigen/Sparse>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using Matrix = Eigen::SparseMatrix<double, Eigen::RowMajor, int>;
using Vector = Eigen::VectorXd;

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

template <class Preconditioner> static void solve(const Matrix &a, const Vector &b) {
    Eigen::ConjugateGradient<Matrix, Eigen::Lower | Eigen::Upper, Preconditioner> cg;
    cg.setTolerance(1e-8);
    cg.setMaxIterations(100000);
    double begin = now();
    cg.compute(a);
    double ready = now();
    Vector x = cg.solve(b);
    double end = now();
    printf("{\"seconds_setup\": %.9g, \"seconds_solve\": %.9g, \"iterations\": %d, \"residual_true\": %.6e}\n",
           ready - begin, end - ready, int(cg.iterations()), (b - a * x).norm() / b.norm());
}

static void products(const Matrix &a) {
    Vector x = Vector::Ones(a.cols()), y = a * x;
    double best = 1e9, from = now();
    for (double end = from; end - from < 0.3;) {
        double start = now();
        y.noalias() = a * x;
        end = now();
        best = std::min(best, end - start);
    }
    printf("{\"ms\": %.9g}\n", 1e3 * best);
}

int main(int count, char **words) {
    FILE *file = count == 3 ? fopen(words[1], "rb") : nullptr;
    if (!file) {
        fprintf(stderr, "eigen FILE none|jacobi|icc|products\n");
        return 2;
    }
    auto sizes = read<long long>(file, 2);
    auto starts = read<int>(file, sizes[0] + 1), columns = read<int>(file, sizes[1]);
    auto values = read<double>(file, sizes[1]), rhs = read<double>(file, sizes[0]);
    fclose(file);
    int n = int(sizes[0]);
    Matrix a = Eigen::Map<const Matrix>(n, n, sizes[1], starts.data(), columns.data(), values.data());
    Vector b = Eigen::Map<const Vector>(rhs.data(), n);
    std::string what = words[2];
    if (what == "products")
        products(a);
    else if (what == "jacobi")
        solve<Eigen::DiagonalPreconditioner<double>>(a, b);
    else if (what == "icc")
        solve<Eigen::IncompleteCholesky<double>>(a, b);
    else
        solve<Eigen::IdentityPreconditioner>(a, b);
}
