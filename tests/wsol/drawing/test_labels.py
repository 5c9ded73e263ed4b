"""Labels stay inside the picture and off each other, whatever they say and wherever their boxes lie."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from wsol.drawing.labels import Label, draw_labels, fit_text, font, overlap, place_labels

side = st.integers(30, 700)
corner = st.integers(-100, 800)
labels = st.lists(
    st.builds(
        Label,
        st.text(max_size=80),
        st.just((0, 0, 0)),
        st.tuples(corner, corner, corner, corner),
    ),
    max_size=7,
)


@settings(max_examples=60, deadline=None)
@given(labels, side, side)
def test_labels_stay_inside_and_apart(labels: list[Label], width: int, height: int) -> None:
    placed = place_labels(labels, (width, height), 14)
    for i, one in enumerate(placed):
        x0, y0, x1, y1 = one.rect
        assert 0 <= x0 < x1 <= width
        assert 0 <= y0 < y1 <= height
        assert font(14).getlength(one.text) <= x1 - x0
        assert not any(overlap(one.rect, other.rect) for other in placed[:i])


def test_every_chip_finds_a_place_where_there_is_room() -> None:
    same = [Label(f"bird number {i}", (0, 0, 0), (100, 100, 200, 200)) for i in range(12)]
    assert len(place_labels(same, (400, 400), 14)) == 12


def test_a_chip_stands_above_its_box_where_it_can() -> None:
    (label,) = place_labels([Label("gull", (0, 0, 0), (50, 80, 150, 180))], (300, 300), 14)
    assert label.rect[0] == 50
    assert label.rect[3] == 80


def test_long_text_is_cut_in_its_middle() -> None:
    text = fit_text("Black_footed_Albatross_0001_796111.jpg", font(14), 150)
    assert text.startswith("Black")
    assert text.endswith("jpg")
    assert "…" in text
    assert font(14).getlength(text) <= 150


def test_control_characters_do_not_break_a_line() -> None:
    assert fit_text("a\nb\tc\x00d", font(14), 500) == "a b c d"


def test_letters_are_drawn_inside_their_chip() -> None:
    picture = Image.new("RGB", (300, 80), (10, 20, 30))
    placed = place_labels([Label("Ågypq|Égj", (200, 0, 0), (60, 40, 90, 60))], picture.size, 20)
    draw_labels(picture, placed, 20)
    x0, y0, x1, y1 = placed[0].rect
    white = [(x, y) for x in range(300) for y in range(80) if picture.getpixel((x, y)) == (255, 255, 255)]
    assert white
    assert all(x0 <= x < x1 and y0 <= y < y1 for x, y in white)
