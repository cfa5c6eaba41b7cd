"""Numbers: NaN and infinity, vanishing and exploding gradients, precision."""
