// Rival: Eigen. Solves or multiplies with the matrix in FILE, writes x or y to ANSWER (f64), and prints JSON. OMP_NUM_THREADS sets
// the number of threads.
//
//   g++ -O3 -march=native -fopenmp -DNDEBUG -I/usr/include/eigen3 eigen.cpp -o eigen
//   eigen FILE none|jacobi|icc RTOL ANSWER   one solve of A x = b by ConjugateGradient to ||b - A x|| <= RTOL ||b||
//   eigen FILE products RTOL ANSWER          products y = A b in a row, as many as fit into a second
//   eigen version
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

template <class Preconditioner> static Vector solve(const Matrix &a, const Vector &b, double tolerance) {
    Eigen::ConjugateGradient<Matrix, Eigen::Lower | Eigen::Upper, Preconditioner> cg;
    cg.setTolerance(tolerance);
    cg.setMaxIterations(100000);
    double begin = now();
    cg.compute(a);
    double ready = now();
    Vector x = cg.solve(b);
    double end = now();
    printf("{\"seconds_setup\": %.9g, \"seconds_solve\": %.9g, \"iterations\": %d, \"residual_true\": %.6e}\n",
           ready - begin, end - ready, int(cg.iterations()), (b - a * x).norm() / b.norm());
    return x;
}

static Vector products(const Matrix &a, const Vector &x) {
    Vector y = a * x;
    double begin = now();
    y.noalias() = a * x;
    double once = std::max(now() - begin, 1e-7);
    int each = std::max(1, std::min(1000, int(0.1 / once))), samples = std::max(1, std::min(10, int(1 / once)));
    printf("{\"each\": %d, \"seconds\": [", each);
    for (int sample = 0; sample < samples; sample++) {
        begin = now();
        for (int product = 0; product < each; product++)
            y.noalias() = a * x;
        printf("%s%.9g", sample ? ", " : "", (now() - begin) / each);
    }
    printf("]}\n");
    return y;
}

int main(int count, char **words) {
    if (count == 2 && std::string(words[1]) == "version") {
        printf("%d.%d.%d\n", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
        return 0;
    }
    FILE *file = count == 5 ? fopen(words[1], "rb") : nullptr;
    if (!file) {
        fprintf(stderr, "eigen FILE none|jacobi|icc|products RTOL ANSWER\n");
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
    double tolerance = atof(words[3]);
    Vector x;
    if (what == "products")
        x = products(a, b);
    else if (what == "jacobi")
        x = solve<Eigen::DiagonalPreconditioner<double>>(a, b, tolerance);
    else if (what == "icc")
        x = solve<Eigen::IncompleteCholesky<double>>(a, b, tolerance);
    else
        x = solve<Eigen::IdentityPreconditioner>(a, b, tolerance);
    FILE *answer = fopen(words[4], "wb");
    return answer && fwrite(x.data(), sizeof(double), n, answer) == size_t(n) && fclose(answer) == 0 ? 0 : 2;
}
