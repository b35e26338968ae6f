"""The book for a reader's assistant: pages as Markdown, a tutor's file, what a page says of itself."""

import re
import zipfile
from types import SimpleNamespace

import answering
import archive
import assistants
import pytest

from book import questions


@pytest.mark.parametrize(("text", "about"), [
    ("# A\n\n> **Question.** Who *can* be heard, by [the last](x.md)?\n", "Who can be heard, by the last?"),
    ("# A\n\n> **问题。** 谁？\n", "谁？"),
    ("# A\n\nThis page has a sentence of some length.\n", "This page has a sentence of some length."),
    ("# A\n", assistants.TITLE),
])  # fmt: skip
def test_a_page_says_what_it_is_about(text, about):
    assert assistants.description(text) == about


def test_a_link_to_a_page_can_show_a_picture_of_the_site():
    assert (assistants.ROOT / "_static" / assistants.PICTURE).exists()
    assert assistants.picture("") == "", "a relative address would show nothing"


def test_a_long_description_ends_at_a_word():
    found = assistants.description("> **Question.** " + "word " * 100)
    assert len(found) <= assistants.LONGEST
    assert found.endswith("word…")


@pytest.mark.parametrize("chapter", answering.notebooks())
def test_a_page_of_exercises_as_markdown_has_no_solution(chapter):
    path = answering.notebooks()[chapter]
    text = assistants.source(path)
    assert "Solution" not in text
    assert all(each["title"] in text for each in answering.listed(path))
    assert "google.colab" not in text


@pytest.mark.parametrize("chapter", answering.notebooks())
def test_a_tutors_file_gives_hints_in_order_and_solutions_last(chapter):
    path = answering.notebooks()[chapter]
    text = assistants.tutor(chapter, path)
    exercises, _, solutions = text.partition("# Solutions")
    numbers = [each["number"] for each in answering.listed(path)]
    assert all(f"## {number} " in exercises for number in numbers)
    assert all(f"## {number}\n" in solutions for number in numbers)
    assert "@title" not in exercises
    assert re.findall(r"\*\*Hint (\d): ", exercises) == ["1", "2", "3"] * len(numbers)
    assert "Do not give the solution before the third hint" in exercises
    assert answering.setup_cell(path).strip() in exercises


def test_what_a_cell_gave_follows_its_code_as_words():
    table = "<table><tr><th>n</th><th>share</th></tr><tr><td>9</td><td>0.1 &lt; 1</td></tr></table>"
    given = [
        {"output_type": "stream", "text": ["one\n"]},
        {"output_type": "execute_result", "data": {"text/markdown": ["**Two**"], "text/plain": ["<M>"]}},
        {"output_type": "execute_result", "data": {"text/html": ["<b>x</b>"], "text/plain": ["three"]}},
        {"output_type": "execute_result", "data": {"text/html": [f'<img src=x alt="Four.">{table}'], "text/plain": ["<H>"]}},
    ]  # fmt: skip
    cell = {"cell_type": "code", "metadata": {}, "source": ["f()"], "outputs": given}
    assert assistants.of_cells([cell]).split("\n\n") == [
        "```python\nf()\n```", "```text\none\n```", "**Two**", "```text\nthree\n```",
        "*Figure.* Four.\n| n | share |\n| 9 | 0.1 < 1 |\n",
    ]  # fmt: skip


def test_a_chinese_page_as_markdown_is_chinese():
    text = assistants.markdown("chapters/zh/glossary", None)
    assert text.startswith("# 术语表")
    assert "Written at build" not in text


def test_the_bank_as_markdown_has_its_questions_and_answers():
    text = assistants.markdown("chapters/exam", answering.ROOT / "chapters/exam.md")
    assert text.count("<summary>Answer</summary>") == len(questions.bank())
    assert "{questions}" not in text


def test_pages_are_listed_in_the_order_of_the_book():
    env = SimpleNamespace(
        config=SimpleNamespace(root_doc="a"),
        toctree_includes={"a": ["b", "c", "x/zh/b"], "b": ["d"], "c": ["d"]},
    )
    assert assistants.ordered(env) == ["a", "b", "d", "c"]


def test_the_zip_holds_the_site_and_how_to_serve_it(tmp_path):
    inside = ("index.html", "chapters/welcome.html", "live/train.html")
    for name in (*inside, "live/model-0123.bin", "book.pdf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    path = archive.write(tmp_path)
    names = set(zipfile.ZipFile(path).namelist())
    assert names == {f"{archive.TOP}/{name}" for name in ("README.txt", *inside)}
    assert not list(tmp_path.glob("*.part"))
