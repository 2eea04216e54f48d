"""The table of questions: each is a function, a command that asks it, parameters that a worker reads, and a schema."""

import argparse
import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import get_type_hints

import pytest

from dovetail.answers import questions
from dovetail.answers.questions.asking import Answered, Asked, Source
from dovetail.answers.questions.table import QUESTIONS, question
from dovetail.cli.commands.asking import Question
from dovetail.cli.main import parser

# What the page and the completion of a shell ask; no command prints it.
WITHOUT_COMMAND = {"pods", "trend", "names"}
# Of a command that asks no worker.
OF_HERE = {"preflight"}


def commands(of: argparse.ArgumentParser, typed: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Question]]:
    """What is typed, with a word for each argument that has to be there, and what that asks."""
    below = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    for name, command in (each for action in below for each in action.choices.items()):
        yield from commands(command, (*typed, name))
    asked = of.get_default("asks")
    if isinstance(asked, Question):
        needed = [action for action in of._actions if not action.option_strings and action.nargs is None]
        yield (*typed, *("shop/web" for _ in needed)), asked


def functions() -> set[str]:
    """Of all modules of questions, as the table names them."""
    found = set()
    for module in iter_modules(questions.__path__):
        for name, function in inspect.getmembers(import_module(f"{questions.__name__}.{module.name}")):
            answers = inspect.iscoroutinefunction(function) and get_type_hints(function).get("asked") is Asked
            if answers and function.__module__.endswith(f".{module.name}") and not name.startswith("_"):
                found.add(f"{module.name}.{name}")
    return found


def test_every_function_that_answers_is_in_the_table() -> None:
    assert sorted(place.function for place in QUESTIONS.values()) == sorted(functions())


@pytest.mark.parametrize("route", QUESTIONS)
def test_a_question_is_answered_from_any_source(route: str) -> None:
    assert get_type_hints(question(route)) == {"source": Source, "asked": Asked, "return": Answered}


def test_every_question_has_a_command_and_every_command_a_question() -> None:
    routes = [asked.route for _, asked in commands(parser())]
    assert sorted(routes) == sorted(set(QUESTIONS) - WITHOUT_COMMAND)


def test_a_worker_reads_every_parameter_that_a_command_sends() -> None:
    for typed, asked in commands(parser()):
        for more in ([], ["--file", "/dev/null"] if asked.route == "plan" else []):
            sent = asked.words(parser().parse_args([*typed, *more])) if asked.words else {}
            assert set(sent) - OF_HERE <= set(QUESTIONS[asked.route].parameters)


def test_a_parameter_is_an_argument_of_the_same_name() -> None:
    for typed, asked in commands(parser()):
        if asked.words is None:
            asked.parameters(parser().parse_args(typed))


def test_parameters_are_sent_as_they_are_typed_and_not_where_they_are_empty() -> None:
    typed = ["log", "--kind", "launch", "--kind", "disruption", "--pool", "web"]
    [(_, asked)] = [(words, each) for words, each in commands(parser()) if words == ("log",)]
    found = asked.parameters(parser().parse_args(typed))
    assert found == {"since": "24h", "pool": "web", "kind": "launch,disruption"}
