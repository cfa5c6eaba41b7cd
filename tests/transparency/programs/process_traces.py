# What shows where a recorder lives: in imported modules and opened files.
# transparency: differs="the recorder's modules are imported and its ledger is an open file"
import os
import sys

print("modules of a recorder:", [name for name in ("click", "msgspec", "whygrad") if name in sys.modules])
print("next file descriptor:", os.open(os.devnull, os.O_RDONLY))
