# What shows where a recorder lives: opened files, the original command line, allocation hooks.
# transparency: differs="the recorder's command line and its ledger file are there to be seen"
import os
import sys

print("orig_argv:", [os.path.basename(word) for word in getattr(sys, "orig_argv", ["python", __file__])][1:])
print("modules of a recorder:", [name for name in sys.modules if name.partition(".")[0] == "whygrad"])
print("next file descriptor:", os.open(os.devnull, os.O_RDONLY))
