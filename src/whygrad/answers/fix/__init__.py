"""Fixes that were tried: the change of a finding's rule, the run with it, and what the two runs say beside each other.

`try_fixes` runs the program as it is and with the changes; no file of the user's is written. `write` is what writes.
"""

from whygrad.answers.fix.fixing import Fix, Fixes, Status, try_fixes
from whygrad.answers.fix.writing import Guard, check_writable, write

__all__ = ["Fix", "Fixes", "Guard", "Status", "check_writable", "try_fixes", "write"]
