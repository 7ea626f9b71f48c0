// GAP's own PageRank beside us: its kernel is called as its benchmark does, and the ranks are written out.
//
//   g++ -O3 -march=native -fopenmp -I GAP/src [-DJACOBI] [-DDOUBLE] gap.cpp -o gap
//   gap FILE.sg TOL MOST RANKS     OMP_NUM_THREADS says on how many threads
//
// pr.cc is Gauss-Seidel, pr_spmv.cc (-DJACOBI) is power iteration. Both compute in single precision; -DDOUBLE makes that double,
// and changes nothing else. FILE is a graph in GAP's serialised form, which is taken as it is: edge lists lose their self loops
// and repeated links. RANKS receives f64. A line is printed by each iteration, and JSON at the end.
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

// Some of its versions print only when they are told to.
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
