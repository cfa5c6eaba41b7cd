"""Rules: each knows one way in which gradients or training go wrong, and finds it in a ledger.

`diagnose(ledger)` runs them. A rule is one module in the folder of its family; `registry` finds them.
"""
