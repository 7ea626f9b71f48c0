"""pagerank and markov."""
import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import solver
from places import check_ranking, in_threads


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


def test_the_defaults_are_those_of_networkx():
    graph = nx.DiGraph([(0, 1), (2, 1)])
    graph.add_edge(0, 2, weight=5.0)
    jumps = {0: 1.0, 1: 3.0}
    for settings in ({}, {"personalization": jumps}, {"personalization": jumps, "alpha": 0.6}, {"weight": None}):
        ours = solver.pagerank(graph, tol=1e-13, **settings).to_dict()
        theirs = nx.pagerank(graph, tol=1e-15, max_iter=10_000, **settings)
        assert max(abs(ours[vertex] - theirs[vertex]) for vertex in theirs) < 1e-12, settings


def test_multigraphs_add_their_links():
    graph = nx.MultiDiGraph([(0, 1), (0, 1), (0, 2), (1, 0), (2, 0)])
    ours, theirs = solver.pagerank(graph, tol=1e-13).to_dict(), nx.pagerank(graph, tol=1e-15, max_iter=10_000)
    assert max(abs(ours[vertex] - theirs[vertex]) for vertex in theirs) < 1e-12


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


def test_a_name_of_weights_that_no_link_has_is_refused():
    pd, igraph = pytest.importorskip("pandas"), pytest.importorskip("igraph")
    table = pd.DataFrame({"source": [0, 0, 1], "target": [1, 2, 0], "cost": [9.0, 1.0, 1.0]})
    of_networkx, of_igraph = nx.DiGraph(), igraph.Graph(n=3, edges=[(0, 1), (0, 2), (1, 0)], directed=True)
    of_networkx.add_weighted_edges_from(table.itertuples(index=False), weight="cost")
    of_igraph.es["cost"] = table["cost"].tolist()
    for graph in (table, of_networkx, of_igraph):
        for call in (solver.pagerank, solver.markov):
            with pytest.raises(solver.InputError, match="weight is 'price'.*cost.*weight=None"):
                call(graph, weight="price")
        costs, ones = solver.pagerank(graph, weight="cost").ranks, solver.pagerank(graph).ranks
        assert costs[1] > ones[1] and np.array_equal(ones, solver.pagerank(graph, weight=None).ranks)
    assert len(solver.pagerank(nx.empty_graph(3), weight="price")) == 3, "a graph without links has no weights"


@pytest.mark.parametrize("sources", [["a", None, None, "b"], ["a", float("nan"), "c", "b"], [1, None, 2, 3]])
def test_missing_vertices_of_a_table_are_refused(sources):
    pd = pytest.importorskip("pandas")
    for sort in (object, "string" if isinstance(sources[0], str) else "Int64"):
        table = pd.DataFrame({"source": pd.Series(sources, dtype=sort), "target": sources[::-1]})
        with pytest.raises(solver.InputError, match="vertices in the column source are missing"):
            solver.pagerank(table)
    with pytest.raises(solver.InputError, match="in the column target"):
        solver.pagerank(pd.DataFrame({"source": [1] * 4, "target": sources}))


def test_labels_of_edge_arrays_come_back():
    ranks = solver.pagerank((["x", "y", "z"], ["y", "x", "x"]), tol=1e-12)
    assert list(ranks.labels) == ["x", "y", "z"] and ranks.top(3)[-1][0] == "z"
    assert set(ranks.to_dict()) == {"x", "y", "z"}


def test_reports_have_the_labels():
    for graph, best in (
        ((["x", "y", "z"], ["y", "x", "x"]), "x"), (nx.DiGraph([("ann", "bob"), ("cid", "bob"), ("bob", "ann")]), "bob"),
        ((["one\nline", "b"], ["b", "b"]), "b"), (([(1, 2), "a\nb"], ["a\nb", "a\nb"]), "a\\nb"),
    ):
        ranks = solver.pagerank(graph, tol=1e-12)
        assert ranks.report["top"][0]["label"] == best and best in str(ranks).splitlines()[-len(ranks)]
    numbered = solver.pagerank(nx.path_graph(3), tol=1e-12).report["top"][0]
    assert numbered["id"] == 1 and "label" not in numbered


def test_a_list_of_tuples_has_the_links():
    want = solver.pagerank(([0, 1], [1, 2]), tol=1e-12)
    for links in ([(0, 1), (1, 2)], [(0, 1, 1.0), (1, 2, 1.0)]):
        assert np.array_equal(solver.pagerank(links, tol=1e-12).ranks, want.ranks)
    three = [("a", "b", 2.0), ("a", "c", 1.0), ("b", "a", 1.0)]
    want = solver.pagerank(tuple(map(list, zip(*three))), tol=1e-12)
    got = solver.pagerank(three, tol=1e-12)
    assert got.to_dict() == want.to_dict() and list(got.labels) == ["a", "b", "c"]


@pytest.mark.parametrize("sources, targets, labels", [
    (["a", 1], [1, "a"], ["a", 1]), ([(1, 2), "x"], ["x", (1, 2)], [(1, 2), "x"]),
    (np.array([3, 0], np.uint32), np.array([0, 3], np.uint64), [0, 3]),
    (np.array(["a", "b"]), np.array(["b", "a"], object), ["a", "b"]), (["a", "\udc80"], ["\udc80", "a"], ["a", "\udc80"]),
    ([2**70, 1], [1, 2**70], [2**70, 1]), (np.array(["b", "a"], "S1"), ["a", b"b"], [b"b", "a", b"a"]),
])
def test_labels_of_any_kind_keep_their_type(sources, targets, labels):
    assert list(solver.pagerank((sources, targets)).labels) == labels


def test_ids_of_a_file_are_the_labels_everywhere(tmp_path):
    (tmp_path / "links.txt").write_text("1 2\n2 3\n3 1\n4 1\n")
    ranks = solver.pagerank(tmp_path / "links.txt", tol=1e-12)
    assert list(ranks.labels) == [1, 2, 3, 4]
    best = ranks.top(1)[0]
    assert ranks.to_dict()[best[0]] == best[1] == ranks.ranks.max() and ranks.top(1)[0] == best
    jumps = solver.pagerank(tmp_path / "links.txt", personalization={4: 1.0}, tol=1e-12)
    assert jumps.to_dict()[4] > 0.1 > ranks.to_dict()[4]


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
    chain = solver.markov(sp.block_diag([sp.coo_array([[0.5, 0.5], [0.25, 0.75]]), sp.coo_array([[0.0, 1.0], [1.0, 0.0]])]))
    assert chain.converged and len(chain.classes) == 2
    first = next(c for c in chain.classes if 0 in c.states)
    assert np.allclose(first.probabilities, [1 / 3, 2 / 3])
    with pytest.raises(solver.InputError, match="2 closed classes"):
        chain.distribution(4)


def test_a_chain_may_be_a_graph_with_weights_and_labels():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "a", 0.9), ("a", "b", 0.1), ("b", "a", 0.5), ("b", "b", 0.5)])
    found = solver.markov(graph).classes[0]
    assert list(found.labels) == ["a", "b"] and np.allclose(found.probabilities, [5 / 6, 1 / 6])


def test_a_chain_is_read_as_a_graph_is_and_a_list_of_lists_is_a_matrix():
    assert np.allclose(solver.markov([[0.5, 0.5], [0.25, 0.75]]).classes[0].probabilities, [1 / 3, 2 / 3])
    sources, targets, weights = ["a", "a", "b", "b"], ["a", "b", "a", "b"], [0.9, 0.1, 0.5, 0.5]
    for given in ((sources, targets, weights), list(zip(sources, targets, weights))):
        found = solver.markov(given).classes[0]
        assert list(found.labels) == ["a", "b"] and np.allclose(found.probabilities, [5 / 6, 1 / 6])
    for given in (([1, 0], [0, 1]), (np.array([1, 0]), np.array([0, 1])), [(1, 0), (0, 1)]):
        assert [one.probabilities.tolist() for one in solver.markov(given).classes] == [[0.5, 0.5]]
    assert solver.markov((["a", "b"], ["b", "a"])).classes[0].labels == ["a", "b"]


def test_every_answer_has_a_short_form():
    A = solver.generate("poisson2d:9x9")
    answers = [
        solver.Cg(A).solve(np.ones(81)), solver.Cg(A).solve(np.ones((81, 2))), solver.Cg(A, maxiter=1).solve(np.ones((81, 2))),
        solver.pagerank(([0], [0])), solver.markov(np.eye(2)), solver.markov(np.eye(1)),
    ]
    for one in answers:
        assert repr(one).startswith("<") and one.reason in repr(one)


@pytest.mark.parametrize("make, words", [
    (lambda: solver.pagerank(([1.7, 0.0], [0, 1])), "whole numbers"),
    (lambda: solver.pagerank(([0, 1], [1, 0]), personalization=np.ones((2, 2))), "shape"),
    (lambda: solver.pagerank(([0, 1], [1, 0])).top(-1), "count"),
    (lambda: solver.pagerank(np.ones((2, 3))), "square|2 x 3"),
    (lambda: solver.pagerank(([0, 1], [1])), "equal lengths"),
    (lambda: solver.pagerank([[0, 1], [1, 0]]), "links .* or the rows"),
    (lambda: solver.pagerank([(0, 1), (1, 0, 2.0)]), "or none"),
    (lambda: solver.pagerank(([0, -1], [1, 0])), "negative"),
    (lambda: solver.pagerank(([0], [1]), alpha=1.5), "alpha 1.5"),
    (lambda: solver.pagerank(([0], [1]), dangling="somewhere"), "uniform"),
    (lambda: solver.pagerank("no such graph"), "no such graph"),
    (lambda: solver.markov(((0.5, 0.5), (0.25, 0.75))), "whole numbers or labels.*rows of a matrix as an array"),
    (lambda: solver.markov([(0.5, 0.5), (0.25, 0.75)]), "whole numbers or labels.*rows of a matrix as an array"),
    (lambda: solver.markov(((1, 0, 0, 0),) * 4), "4 parts"),
    (lambda: solver.pagerank(([0],)), "1 parts"),
    (lambda: solver.pagerank(([0], None)), "NoneType"),
    (lambda: solver.pagerank(([[0]], [[1]])), r"label \[0\]"),
    (lambda: solver.pagerank(([0], [1], ["a"])), "<U1"),
    (lambda: solver.pagerank(nx.Graph([(0, 1, {"weight": {}})])), "weights of links"),
    (lambda: solver.pagerank(([0], [1]), alpha="much"), "alpha is 'much'"),
    (lambda: solver.pagerank(([0], [1]), tol=None), "tol is None"),
    (lambda: solver.pagerank(([0], [1]), top=-1), "top -1"),
    (lambda: solver.pagerank(([0], [1]), method=1), "method is 1"),
    (lambda: solver.pagerank(([0], [1]), self_loops="no"), "self_loops is 'no'"),
    (lambda: solver.pagerank(([0], [1]), personalization={0: "a"}), "personalization of 0 is 'a'"),
    (lambda: solver.markov(np.eye(1)).distribution(0), "more than 0 states"),
    (lambda: solver.pagerank(sp.csr_array([[0, -1.0], [1.0, 0]])), "negative|-1"),
    (lambda: solver.markov(np.array([[0.5, 0.4], [0.5, 0.5]])), "0.9|sum"),
    (lambda: solver.markov(np.array([[0.5, np.nan], [0.5, 0.5]])), "(?i)nan"),
])
def test_what_cannot_be_ranked_is_refused_in_words(make, words):
    with pytest.raises(solver.SolverError, match=words):
        make()


@pytest.mark.parametrize("make", [
    lambda sources, targets: (sources, targets), lambda *both: list(zip(*both)), lambda *both: tuple(map(np.array, both)),
    lambda *both: pytest.importorskip("pandas").DataFrame(dict(zip(("source", "target"), both))),
])
def test_ids_that_no_link_names_are_no_vertices_as_in_a_file_and_in_networkx(make, tmp_path):
    sources, targets = [7, 1000, 1000], [1000, 7, 12]
    (tmp_path / "ids.csv").write_text("source,target\n7,1000\n1000,7\n1000,12\n")
    file, ours = solver.pagerank(tmp_path / "ids.csv", tol=1e-12), solver.pagerank(make(sources, targets), tol=1e-12)
    theirs = nx.pagerank(nx.DiGraph(list(zip(sources, targets))), tol=1e-15, max_iter=10_000)
    assert ours.labels == file.labels == [7, 12, 1000] and ours.to_dict() == file.to_dict()
    assert ours.report["top"] == file.report["top"] and ours.report["top"][0]["id"] == 1000
    assert all(abs(ours[vertex] - rank) < 1e-10 for vertex, rank in theirs.items())
    chain = solver.markov(make([7, 1000], [1000, 7]))
    assert list(chain.classes[0].labels) == [7, 1000] and chain.distribution(2).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("largest", [2**24 + 64, 3 * 10**9, 2**32 - 2, 2**32, 2**63 - 1])
def test_an_id_of_any_size_is_one_vertex(largest):
    for call in (solver.PageRank, solver.Markov):
        prepared = call((np.array([largest, 0]), np.array([0, largest])))
        assert "2 vertices" in repr(prepared) or "2 states" in repr(prepared)
    assert solver.pagerank((np.array([largest, 0]), np.array([0, largest]))).labels == [0, largest]


@pytest.mark.parametrize("names", [("from", "to", "value"), ("Source Id", "Target_ID", "Weight"), ("dst", "src", "w"), ("u", "v", "weight")])
def test_a_table_may_have_the_columns_of_a_file(names, tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"note": ["x"] * 4} | dict(zip(names, ([1, 1, 2, 3], [2, 3, 1, 1], [9.0, 1.0, 1.0, 3.0]))))
    table.to_csv(tmp_path / "links.csv", index=False)
    ours, file = solver.pagerank(table, tol=1e-12), solver.pagerank(tmp_path / "links.csv", tol=1e-12)
    assert ours.to_dict() == file.to_dict() and ours.to_dict() != solver.pagerank(table, weight=None, tol=1e-12).to_dict()
    both = table.rename(columns={"note": "source"}).assign(target="x")
    assert solver.pagerank(both, weight=None).labels == ["x"], "source and target come before other names"
    with pytest.raises(solver.InputError, match="columns of the table are a, b.* from and to"):
        solver.pagerank(pd.DataFrame({"a": [1], "b": [2]}))


def test_columns_of_text_of_every_kind_give_the_same_ranks():
    pd = pytest.importorskip("pandas")
    sources, targets = ["ann", "ann", "bob", "cid", "Zoë"], ["bob", "cid", "ann", "Zoë", "ann"]
    want = solver.pagerank((sources, targets), tol=1e-12)
    assert want.labels == ["ann", "bob", "cid", "Zoë"], "in the order of the links, a source before its target"
    for kind in (object, "string", "category"):
        table = pd.DataFrame({"source": pd.Series(sources, dtype=kind), "target": pd.Series(targets, dtype=kind)})
        assert solver.pagerank(table, tol=1e-12).to_dict() == want.to_dict(), kind
    links = list(zip(sources, targets))
    for given in (tuple(map(np.array, (sources, targets))), links, nx.DiGraph(links)):
        assert solver.pagerank(given, tol=1e-12).to_dict() == pytest.approx(want.to_dict(), abs=1e-12)


def test_ranks_are_a_mapping_and_go_to_pandas():
    pd = pytest.importorskip("pandas")
    ranks = solver.pagerank((["ann", "ann", "bob"], ["bob", "cid", "ann"]), tol=1e-12)
    assert ranks["ann"] == ranks.ranks[0] and list(ranks) == ranks.labels and dict(ranks) == ranks.to_dict() and len(ranks) == 3
    assert "bob" in ranks and "dan" not in ranks and [] not in ranks and ranks.get("dan") is None
    assert max(ranks, key=ranks.get) == ranks.top(1)[0][0]
    with pytest.raises(KeyError, match="dan"):
        ranks["dan"]
    series, frame = ranks.to_series(), ranks.to_frame()
    assert series["bob"] == ranks["bob"] and series.name == "rank" and list(frame.columns) == ["vertex", "rank"]
    assert frame["vertex"].tolist() == ranks.labels and frame["rank"].tolist() == ranks.ranks.tolist()
    numbered = solver.pagerank(sp.csr_array([[0, 1.0], [1.0, 0]]))
    assert numbered[np.int64(1)] == 0.5 and 2 not in numbered and -1 not in numbered and "1" not in numbered
    assert list(numbered.to_series().index) == [0, 1]
    paired = solver.pagerank(([(1, 2), "x"], ["x", (1, 2)]))
    assert paired[(1, 2)] == paired.to_series().iloc[0] and paired.to_frame()["vertex"][0] == (1, 2)
    each = solver.PageRank((["ann", "bob"], ["bob", "ann"])).solve_each([{"ann": 1.0}, {"bob": 1.0}])
    assert each.to_frame().to_numpy().tolist() == each.ranks.tolist() and list(each.to_frame().index) == ["ann", "bob"]
    assert isinstance(frame, pd.DataFrame)


@pytest.mark.parametrize("method", ["power", "gauss-seidel", "aggregation"])
def test_a_chain_is_solved_by_each_method(method):
    found = solver.markov(np.array([[0.5, 0.5], [0.25, 0.75]]), method=method)
    assert np.allclose(found.distribution(2), [1 / 3, 2 / 3]) and found.report["method"] == method
    with pytest.raises(solver.BadSettingError, match="power, gauss-seidel, aggregation"):
        solver.Markov(np.eye(2), method="fast")


@pytest.mark.parametrize("given", [["a"], ("a", "b"), "a", {"a"}])
def test_labels_without_numbers_are_refused_as_personalization(given):
    for what in ("personalization", "x0"):
        with pytest.raises(solver.InputError, match=rf"{what} is .*a dictionary with a number .* such as \{{'a': 1.0\}}"):
            solver.pagerank((["a", "b"], ["b", "a"]), **{what: given})


LABELLED = ["ann", "ann", "bob", "cid"], ["bob", "cid", "ann", "ann"]


def test_a_prepared_graph_is_ranked_as_by_pagerank():
    graph = nx.les_miserables_graph()
    prepared = solver.PageRank(graph, 0.7, tol=1e-12)
    for jumps in ({"Valjean": 2.0, "Javert": 1.0}, None, {"Cosette": 1.0}):
        once, again = solver.pagerank(graph, 0.7, tol=1e-12, personalization=jumps), prepared.solve(personalization=jumps)
        assert type(again) is solver.Ranks and again.converged and list(again.labels) == list(graph.nodes)
        check_ranking(again, once)
    assert prepared.solve(x0=once.to_dict()).converged
    assert prepared.backend in repr(prepared) and prepared.explain()["candidates"] and prepared.labels == list(graph.nodes)


def test_several_personalizations_are_ranked_at_once_as_one_by_one():
    graph = nx.les_miserables_graph()
    jumps = [{name: 1.0} for name in list(graph.nodes)[:5]]
    prepared = solver.PageRank(graph, tol=1e-12, columns=5)
    each = prepared.solve_each(jumps)
    assert len(each) == 5 and each.ranks.shape == (len(graph), 5) and each.converged.all() and each.reason in repr(each)
    for number, one in enumerate(jumps):
        alone = prepared.solve(one)
        check_ranking(each[number], alone)
        assert each[number].to_dict().keys() == alone.to_dict().keys() and each.report["columns"][number]["converged"]
        assert len(each.history[number]) == each.iterations[number] + 1
    assert [column["personalise"] for column in each.report["columns"]] == list(graph.nodes)[:5] and "column 5: " in str(each)
    array = np.zeros((len(graph), 2), order="F")
    array[0, 0] = array[3, 1] = 1.0
    assert np.array_equal(prepared.solve_each(array).ranks, each.ranks[:, [0, 3]]) and each.plot().startswith("<svg")


def test_a_prepared_graph_is_replaced_with_its_labels():
    prepared = solver.PageRank(LABELLED)
    prepared.update((["x", "y"], ["y", "x"]))
    assert prepared.solve({"x": 1.0}).top(1)[0][0] == "x" and prepared.labels == ["x", "y"] and prepared.shape == (2, 2)


def test_a_prepared_chain_is_solved_from_several_starts_and_replaced():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "a", 9.0), ("a", "b", 1.0), ("b", "a", 1.0), ("b", "b", 1.0)])
    prepared = solver.Markov(graph, normalize=True, tol=1e-12)
    for start in (None, {"a": 1.0}, np.array([0.0, 1.0])):
        assert np.allclose(prepared.solve(start).classes[0].probabilities, [5 / 6, 1 / 6])
    assert list(prepared.solve().classes[0].labels) == ["a", "b"] and "2 states" in repr(prepared)
    prepared.update(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    assert np.allclose(prepared.solve().distribution(3), 1 / 3)


def test_one_prepared_graph_serves_many_threads():
    prepared = solver.PageRank(LABELLED, tol=1e-12)
    expected = {name: prepared.solve({name: 1.0}).ranks for name in prepared.labels}

    def work(name):
        for _ in range(20):
            np.testing.assert_array_equal(prepared.solve({name: 1.0}).ranks, expected[name], name)
    in_threads(work, expected)


@pytest.mark.parametrize("make, words", [
    (lambda: solver.PageRank(LABELLED, columns=0), "columns"),
    (lambda: solver.PageRank(LABELLED, colour="red"), "colour"),
    (lambda: solver.PageRank(LABELLED).solve_each([]), "at least one"),
    (lambda: solver.PageRank(LABELLED).solve_each({"ann": 1.0}), "sequence"),
    (lambda: solver.PageRank(LABELLED).solve_each(np.ones(3)), r"\(3,\)"),
    (lambda: solver.PageRank(LABELLED).solve_each([{"ann": 1.0}, {"dan": 1.0}]), "personalization 1 names 'dan'"),
    (lambda: solver.PageRank(LABELLED).solve_each([np.ones(4)]), r"\(4,\)"),
    (lambda: solver.PageRank(LABELLED, method="gauss-seidel").solve_each([{"ann": 1.0}]), "power"),
    (lambda: solver.PageRank(LABELLED).solve_each([np.ones(3), np.zeros(3)]), "personalizations 1: .*sum to 0"),
    (lambda: solver.PageRank(LABELLED).solve_each([{"ann": 0.0, "bob": 0.0}]), "personalizations ann, bob: .*sum to 0"),
    (lambda: solver.PageRank(LABELLED).solve({"ann": -1.0}), "negative|-1"),
    (lambda: solver.PageRank(LABELLED).solve({"ann": 0.0}), "^personalization: .*sum to 0"),
    (lambda: solver.PageRank(LABELLED).solve(x0=np.zeros(3)), "^x0: .*sum to 0"),
    (lambda: solver.PageRank(LABELLED).solve_each(None), "personalizations is NoneType"),
    (lambda: solver.PageRank(LABELLED).solve_each(5), "personalizations is int"),
    (lambda: solver.PageRank(LABELLED, alpha=1.5), "^alpha 1.5: "),
    (lambda: solver.pagerank(LABELLED, colour="red"), "pagerank has no argument colour; .* personalization, .* maxiter, .* threads"),
    (lambda: solver.Markov(np.eye(2), colour="red"), "Markov has no argument colour; .* normalize"),
    (lambda: solver.markov(np.ones((2, 2))), r"sum to 1.* \(normalize=True\)"),
    (lambda: solver.markov((["a", "b"], ["b", "a"], [2.0, 1.0])), r"sum to 1.* \(normalize=True\)"),
    (lambda: pickle.dumps(solver.PageRank(LABELLED)), "PageRank has memory of the library"),
    (lambda: pickle.dumps(solver.PageRank(LABELLED).solve()), "Ranks has memory of the library"),
    (lambda: pickle.dumps(solver.Markov(np.eye(2))), "Markov has memory of the library"),
    (lambda: solver.Markov(np.eye(2)).solve({7: 1.0}), "7"),
])
def test_what_cannot_be_prepared_is_refused_in_words(make, words):
    with pytest.raises(solver.SolverError, match=words):
        make()
