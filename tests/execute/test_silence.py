"""Compiling without warnings leaves no trace in what Python remembers of the program's own."""

import warnings

import pytest

from whygrad.execute.silence import silent_compiler

DOUBTFUL = "value = 1 is 1"


def warn_here() -> None:
    warnings.warn("shown once for this line", stacklevel=1)


def test_the_compiler_does_not_warn_inside() -> None:
    with silent_compiler():
        compile(DOUBTFUL, "<doubtful>", "exec")


def test_the_compiler_warns_again_afterwards() -> None:
    with silent_compiler():
        pass
    with pytest.warns(SyntaxWarning):
        compile(DOUBTFUL, "<doubtful>", "exec")


def test_the_filters_are_put_back_after_an_error() -> None:
    before = list(warnings.filters)
    with pytest.raises(SyntaxError), silent_compiler():
        compile("1 +", "<broken>", "exec")
    assert list(warnings.filters) == before


def test_a_warning_shown_before_is_not_shown_again() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        warn_here()
        with silent_compiler():
            compile(DOUBTFUL, "<doubtful>", "exec")
        warn_here()
    assert len(shown) == 1
