# A byte that is not UTF-8.
# transparency: differs="a program that does not compile is bad input: one line and exit code 2"
print("never")
text = "ÿþ"
