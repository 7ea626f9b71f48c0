"""pagerank and markov."""
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import solver


@pytest.mark.parametrize("make", [nx.karate_club_graph, lambda: nx.gnp_random_graph(60, 0.1, seed=1, directed=True), nx.les_miserables_graph])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_the_ranks_are_those_of_networkx_within_the_bound(make, weight):
    graph = make()
    ours = solver.pagerank(graph, weight=weight, tol=1e-12)
    theirs = nx.pagerank(graph, weight=weight, tol=1e-14, max_iter=10_000)
    assert ours.converged and list(ours.labels) == list(graph.nodes)
    difference = sum(abs(rank - theirs[vertex]) for vertex, rank in ours.to_dict().items())
    assert difference <= ours.error_bound + 60 * 1e-14 * len(graph)


def test_personalization_by_vertex_is_that_of_networkx():
    graph = nx.les_miserables_graph()
    jumps = {"Valjean": 2.0, "Javert": 1.0}
    ours = solver.pagerank(graph, personalization=jumps, weight="weight", tol=1e-12)
    theirs = nx.pagerank(graph, personalization=jumps, weight="weight", tol=1e-14, max_iter=10_000)
    assert max(abs(rank - theirs[vertex]) for vertex, rank in ours.to_dict().items()) < 1e-10
    assert ours.top(1)[0][0] == "Valjean"
    with pytest.raises(solver.InputError, match="Nobody"):
        solver.pagerank(graph, personalization={"Nobody": 1.0})


def test_arrays_tables_and_matrices_give_the_same_ranks():
    pd, igraph = pytest.importorskip("pandas"), pytest.importorskip("igraph")
    sources, targets = np.array([0, 1, 2, 3, 3]), np.array([1, 2, 0, 0, 1])
    matrix = sp.coo_array((np.ones(5), (sources, targets)), shape=(4, 4))
    all = [
        solver.pagerank(given, tol=1e-13)
        for given in (
            (sources, targets), (sources, targets, np.ones(5)), matrix, matrix.toarray(),
            pd.DataFrame({"source": sources, "target": targets}),
            igraph.Graph(n=4, edges=list(zip(sources, targets)), directed=True),
        )
    ]
    assert all[0].top(1)[0][0] == 1
    for other in all[1:]:
        assert np.allclose(other.ranks, all[0].ranks, atol=1e-12)


def test_labels_of_edge_arrays_come_back():
    ranks = solver.pagerank((["x", "y", "z"], ["y", "x", "x"]), tol=1e-12)
    assert list(ranks.labels) == ["x", "y", "z"] and ranks.top(3)[-1][0] == "z"
    assert set(ranks.to_dict()) == {"x", "y", "z"}


def test_ranks_of_a_file_have_its_names(tmp_path):
    (tmp_path / "links.csv").write_text("source,target\nann,bob\nbob,ann\ncid,ann\n")
    ranks = solver.pagerank(tmp_path / "links.csv", tol=1e-12)
    assert set(ranks.labels) == {"ann", "bob", "cid"} and ranks.top(1)[0][0] == "ann"


def test_a_bound_tells_which_ranks_are_undecided():
    # Two vertices of equal rank.
    ranks = solver.pagerank(([0, 1], [1, 0]), tol=1e-6)
    assert ranks.top(2)[0][2] is False
    assert ranks.report["vertices"] == 2 and "2 vertices" in str(ranks)


def test_each_closed_class_has_a_distribution():
    chain = solver.markov(sp.block_diag([np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([[0.0, 1.0], [1.0, 0.0]])]))
    assert chain.converged and len(chain.classes) == 2
    first = next(c for c in chain.classes if 0 in c.states)
    assert np.allclose(first.probabilities, [1 / 3, 2 / 3])
    with pytest.raises(solver.InputError, match="2 closed classes"):
        chain.distribution(4)


@pytest.mark.parametrize("make, words", [
    (lambda: solver.pagerank(np.ones((2, 3))), "square|2 x 3"),
    (lambda: solver.pagerank(([0, 1], [1])), "equal lengths"),
    (lambda: solver.pagerank(([0, -1], [1, 0])), "negative"),
    (lambda: solver.pagerank(([0], [1]), alpha=1.5), "damping"),
    (lambda: solver.pagerank(([0], [1]), dangling="somewhere"), "uniform"),
    (lambda: solver.pagerank("no such graph"), "no such graph"),
    (lambda: solver.pagerank(sp.csr_array([[0, -1.0], [1.0, 0]])), "negative|-1"),
    (lambda: solver.markov(np.array([[0.5, 0.4], [0.5, 0.5]])), "0.9|sum"),
    (lambda: solver.markov(np.array([[0.5, np.nan], [0.5, 0.5]])), "(?i)nan"),
])
def test_what_cannot_be_ranked_is_refused_in_words(make, words):
    with pytest.raises(solver.SolverError, match=words):
        make()
