"""Finds the rules: one module each in the folders beside this one, and those of other packages.

Another package adds its rules by an entry point of the group `whygrad.rules` that names a `Rule` class, or a module
or function that gives several.
"""

from __future__ import annotations

import inspect
import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

import whygrad.rules
from whygrad.errors import WhygradError
from whygrad.rules.rule import Rule

GROUP = "whygrad.rules"


class BadRule(WhygradError):  # noqa: N818
    """A rule of another package cannot be used."""


@cache
def rules() -> tuple[Rule, ...]:
    """Our own rules, by code."""
    found: dict[str, Rule] = {}
    for family in pkgutil.iter_modules(whygrad.rules.__path__):
        if not family.ispkg:
            continue
        package = import_module(f"{whygrad.rules.__name__}.{family.name}")
        for module in pkgutil.iter_modules(package.__path__):
            for rule in _defined_in(import_module(f"{package.__name__}.{module.name}")):
                assert rule.code not in found, f"two rules are called {rule.code}"
                found[rule.code] = rule()
    return tuple(found[code] for code in sorted(found))


def all_rules() -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Our own rules and those of other packages; and a sentence for each that could not be loaded."""
    known = {rule.code: rule for rule in rules()}
    failed = []
    for point in entry_points(group=GROUP):
        try:
            for rule in _given_by(point.load()):
                if rule.code in known:
                    raise BadRule(f"its code {rule.code} is taken by {type(known[rule.code]).__module__}")
                known[rule.code] = rule
        except Exception as error:
            failed.append(f"The rules of {point.name!r} ({point.value}) could not be loaded: {error}.")
    return tuple(known[code] for code in sorted(known)), tuple(failed)


def find(text: str) -> Rule | None:
    """The rule of a code or a slug, however it is spelled."""
    wanted = text.strip().lower()
    return next((rule for rule in all_rules()[0] if wanted in (rule.code.lower(), rule.slug.lower())), None)


def _defined_in(module: ModuleType) -> list[type[Rule]]:
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Rule)
        and not inspect.isabstract(value)
        and value.__module__ == module.__name__
    ]


def _given_by(loaded: Any) -> list[Rule]:
    if isinstance(loaded, ModuleType):
        return [rule() for rule in _defined_in(loaded)]
    given = [loaded] if inspect.isclass(loaded) else list(loaded())
    made: list[Rule] = []
    for one in given:
        rule = one() if inspect.isclass(one) else one
        if not isinstance(rule, Rule):
            raise BadRule("it gives something that is not a whygrad.rules.rule.Rule")
        made.append(rule)
    return made
