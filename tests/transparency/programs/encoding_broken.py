# A byte that is not UTF-8.
print("never")
text = "ÿþ"
