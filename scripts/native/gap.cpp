// Rival: GAP. Calls GAP's PageRank kernel as GAP's benchmark does, and writes the ranks to a file.
//
//   g++ -O3 -march=native -fopenmp -I GAP/src [-DJACOBI] [-DDOUBLE] gap.cpp -o gap
//   gap FILE.sg TOL MOST RANKS     OMP_NUM_THREADS sets the number of threads
//
// pr.cc is Gauss-Seidel, pr_spmv.cc (-DJACOBI) is power iteration. Both compute in single precision; -DDOUBLE changes that to
// double precision and nothing else. FILE is a graph in GAP's serialised form, because GAP's reader of edge lists removes self
// loops and repeated links. The ranks are written to RANKS in f64. Each iteration prints a line, and the end prints JSON.
#include "benchmark.h"
#include <chrono>
#include <cmath>
#include <cstdio>
#include <type_traits>

#define main gap_main
#ifdef DOUBLE
#define float double
#endif
#ifdef JACOBI
#include "pr_spmv.cc"
#else
#include "pr.cc"
#endif
#undef float
#undef main

// Some versions of the kernel print each iteration only if their last argument is true.
template <class Kernel> static pvector<ScoreT> run(Kernel kernel, const Graph &g, int most, double tolerance) {
    if constexpr (std::is_invocable_v<Kernel, const Graph &, int, double, bool>)
        return kernel(g, most, tolerance, true);
    else
        return kernel(g, most, tolerance);
}

int main(int count, char **words) {
    if (count != 5) {
        fprintf(stderr, "gap FILE.sg TOL MOST RANKS\n");
        return 2;
    }
    char name[] = "gap", file[] = "-f";
    char *arguments[] = {name, file, words[1], nullptr};
    CLPageRank cli(3, arguments, name, 1e-4, 20);
    if (!cli.ParseArgs())
        return 2;
    Graph g = Builder(cli).MakeGraph();
#ifdef JACOBI
    auto kernel = PageRankPull;
#else
    auto kernel = PageRankPullGS;
#endif
    auto begin = std::chrono::steady_clock::now();
    pvector<ScoreT> scores = run(kernel, g, atoi(words[3]), atof(words[2]));
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    FILE *to = fopen(words[4], "wb");
    if (!to)
        return 2;
    for (ScoreT score : scores) {
        double wide = score;
        fwrite(&wide, sizeof wide, 1, to);
    }
    fclose(to);
    printf("{\"seconds\": %.9g}\n", seconds.count());
}
