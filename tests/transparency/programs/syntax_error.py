# A program that does not compile.
# transparency: differs="a program that does not compile is bad input: one line and exit code 2"
print("never printed")
value = [1, 2
for item in value:
    print(item)
