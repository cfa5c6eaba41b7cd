"""Problems: their format, how their answers are settled by running them, and a learner's way through them."""
