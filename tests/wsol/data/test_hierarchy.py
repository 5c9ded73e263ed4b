"""The packaged CUB table, the tree over it, and the reader of hierarchy files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wsol.data.hierarchy import CubVersion, Hierarchy, cub_hierarchy, read_hierarchy_csv
from wsol.errors import DataError

HEADER = "class_id,class_name,family,order\n"
SMALL = Hierarchy.from_table(
    ("species", "family", "order"),
    [
        ("001.Red_Finch", "Finches", "Perching birds"),
        ("004.Grey_Gull", "Gulls", "Water birds"),
        ("007.Blue_Finch", "Finches", "Perching birds"),
        ("009.Blue_Jay", "Jays", "Perching birds"),
    ],
)


def ancestors(tree: Hierarchy, name: str) -> tuple[str, str]:
    label = tree.names[0].index(name)
    family = tree.labels("family")[label]
    order = tree.labels("order")[label]
    return tree.names[1][family], tree.names[2][order]


def same_groups(a: list[str], b: list[str]) -> bool:
    """Whether two columns put the same rows together, whatever they call the groups."""
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


@pytest.mark.parametrize(("version", "orders"), [("danet", 11), ("corrected", 13)])
def test_the_cub_table_has_the_published_counts(version: CubVersion, orders: int) -> None:
    tree = cub_hierarchy(version)
    assert tree.levels == ("species", "family", "order")
    assert [tree.num(level) for level in tree.levels] == [200, 37, orders]
    assert tree.names[0][0] == "001.Black_footed_Albatross"
    assert tree.names[0][199] == "200.Common_Yellowthroat"
    assert [int(name[:3]) for name in tree.names[0]] == list(range(1, 201))


@pytest.mark.parametrize(
    ("name", "family", "danet", "corrected"),
    [
        ("001.Black_footed_Albatross", "Diomedeidae", "Procellariiformes", "Procellariiformes"),
        ("018.Spotted_Catbird", "Ptilonorhynchidae", "Passeriformes", "Passeriformes"),
        ("019.Gray_Catbird", "Mimidae", "Passeriformes", "Passeriformes"),
        ("055.Evening_Grosbeak", "Fringillidae", "Passeriformes", "Passeriformes"),
        ("057.Rose_breasted_Grosbeak", "Cardinalidae", "Passeriformes", "Passeriformes"),
        ("118.House_Sparrow", "Passeridae", "Passeriformes", "Passeriformes"),
        ("129.Song_Sparrow", "Passerellidae", "Passeriformes", "Passeriformes"),
        ("044.Frigatebird", "Fregatidae", "Suliformes+Piciformes", "Suliformes"),
        ("023.Brandt_Cormorant", "Phalacrocoracidae", "Suliformes+Piciformes", "Suliformes"),
        ("188.Pileated_Woodpecker", "Picidae", "Suliformes+Piciformes", "Piciformes"),
        ("067.Anna_Hummingbird", "Trochilidae", "Apodiformes+Coraciiformes", "Apodiformes"),
        ("079.Belted_Kingfisher", "Alcedinidae", "Apodiformes+Coraciiformes", "Coraciiformes"),
        ("144.Common_Tern", "Laridae", "Charadriiformes", "Charadriiformes"),
    ],
)
def test_known_species_are_where_they_belong(name: str, family: str, danet: str, corrected: str) -> None:
    assert ancestors(cub_hierarchy("danet"), name) == (family, danet)
    assert ancestors(cub_hierarchy("corrected"), name) == (family, corrected)


def test_corrected_only_splits_the_two_mixed_orders() -> None:
    danet, corrected = cub_hierarchy("danet"), cub_hierarchy("corrected")
    assert danet.names[1] == corrected.names[1]
    assert np.array_equal(danet.labels("family"), corrected.labels("family"))
    for name in danet.names[0]:
        old, new = ancestors(danet, name)[1], ancestors(corrected, name)[1]
        assert new in old.split("+")


def test_the_groups_are_danets(shared: Path) -> None:
    path = shared / "docs" / "cub_hierarchy_danet.csv"
    if not path.is_file():
        pytest.skip("needs DANet's lists")
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    tree = cub_hierarchy("danet")
    assert [f"{int(r['class_id']):03d}.{r['class_name']}" for r in rows] == list(tree.names[0])
    for level in ("family", "order"):
        theirs = [r[f"{level}_id"] for r in rows]
        assert same_groups(theirs, [str(label) for label in tree.labels(level)])


def test_class_names_are_those_of_the_real_data_set(shared: Path) -> None:
    lines = (shared / "cub40" / "CUB_200_2011" / "classes.txt").read_text().splitlines()
    names = [line.split()[1] for line in lines]
    tree = cub_hierarchy("danet", names)
    assert list(tree.names[0]) == names
    assert tree.num("species") == 40


def test_labels_follow_the_parents() -> None:
    assert SMALL.labels("species").tolist() == [0, 1, 2, 3]
    assert SMALL.labels("family").tolist() == [0, 1, 0, 2]
    assert SMALL.labels("order").tolist() == [0, 1, 0, 0]
    assert SMALL.labels("order").dtype == np.int64
    with pytest.raises(ValueError, match="no level 'genus': this hierarchy has species, family, order"):
        SMALL.labels("genus")


def test_a_subset_is_numbered_anew_by_name_or_id() -> None:
    by_name = SMALL.subset(["009.Blue_Jay", "004.Grey_Gull"])
    assert by_name.names == (
        ("009.Blue_Jay", "004.Grey_Gull"),
        ("Jays", "Gulls"),
        ("Perching birds", "Water birds"),
    )
    assert by_name == SMALL.subset([9, 4])
    with pytest.raises(KeyError):
        SMALL.subset([2])


@given(st.permutations(range(1, 201)), st.integers(1, 200))
@settings(deadline=None, max_examples=25)
def test_any_subset_keeps_every_ancestor(order: list[int], count: int) -> None:
    tree = cub_hierarchy("corrected")
    part = tree.subset(order[:count])
    for level in range(3):
        labels = part.labels(part.levels[level])
        assert set(labels.tolist()) == set(range(part.num(part.levels[level])))
    for name in part.names[0]:
        assert ancestors(part, name) == ancestors(tree, name)


def test_reads_a_file_in_the_order_of_the_class_names(tmp_path: Path) -> None:
    path = tmp_path / "hierarchy.csv"
    path.write_text("\ufeff" + HEADER + "1,001.A,F,O\n\n2,002.B,G,O\n3,003.C,F,O\n", encoding="utf-8")
    tree = read_hierarchy_csv(path, ["003.C", "001.A"])
    assert tree.names == (("003.C", "001.A"), ("F",), ("O",))
    assert read_hierarchy_csv(path).num("species") == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "hierarchy.csv:1: no column 'class_id'"),
        (HEADER, "hierarchy.csv:2: no classes"),
        ("class_id,class_name,family\n1,001.A,F\n", "hierarchy.csv:1: no column 'order'"),
        (HEADER + "1,001.A,F\n", "hierarchy.csv:2: 3 cells where the header has 4"),
        (HEADER + "one,001.A,F,O\n", "hierarchy.csv:2: .*one.* is not a whole number"),
        (HEADER + "1,001.A,,O\n", "hierarchy.csv:2: empty family"),
        (HEADER + "1,001.A,F,O\n2,001.A,F,O\n", "hierarchy.csv:3: species '001.A' is listed twice"),
        (
            HEADER + "1,001.A,F,O\n2,002.B,F,P\n",
            "hierarchy.csv:3: family 'F' is put in order 'P', but earlier in 'O'",
        ),
        (HEADER + '1,001.A,"F"x,O\n', "hierarchy.csv:2: "),
        (HEADER + '1,001.A,"F,O\n', "hierarchy.csv:3: unexpected end of data"),
    ],
)
def test_malformed_files_are_refused_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "hierarchy.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_hierarchy_csv(path)


def test_missing_files_and_classes_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone.csv: cannot be read: No such file"):
        read_hierarchy_csv(tmp_path / "gone.csv")
    with pytest.raises(DataError, match="the CUB hierarchy: no row for class 'Dodo' and 1 more"):
        cub_hierarchy("danet", ["001.Black_footed_Albatross", "Dodo", "Roc"])
    with pytest.raises(ValueError, match="no hierarchy 'linnaeus': choose from danet, corrected"):
        cub_hierarchy("linnaeus")  # type: ignore[arg-type]


_CELL = st.sampled_from(["1", "2", "001.A", "002.B", "F", "G", "O", "", " ", '"', "a\nb", "\x00", "é", "٣"])
_ROW = st.lists(_CELL, max_size=5).map(",".join)


@given(
    st.lists(_ROW, max_size=6).map(lambda rows: (HEADER + "\n".join(rows)).encode()) | st.binary(max_size=80)
)
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_give_a_tree_or_a_data_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "hierarchy.csv"
    path.write_bytes(content)
    try:
        tree = read_hierarchy_csv(path)
    except DataError as error:
        reason = str(error)
    else:
        reason = f"{path}:"
        assert tree.num("species") >= 1
        assert all(name for names in tree.names for name in names)
    assert reason.startswith(f"{path}:")
