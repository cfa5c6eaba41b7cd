"""Why a gradient, an error, a mode or a value is what it is: from the ledger alone, each sentence with its evidence."""

from whygrad.answers.why.answer import Answer, Aspect, Moment, Sentence, Target
from whygrad.answers.why.asked import why

__all__ = ["Answer", "Aspect", "Moment", "Sentence", "Target", "why"]
