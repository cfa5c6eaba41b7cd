# -*- coding: latin-1 -*-
# transparency:
# transparency: env=PYTHONIOENCODING=latin-1
import traceback

text = "été"
print(text, len(text), __doc__)
try:
    café = {"thé": 1}; print(café["thé"] + café["lait"])
except KeyError:
    traceback.print_exc()
print(open(__file__, encoding="latin-1").read().count(text))
raise ValueError(text + text[9])
