# A program that does not compile.
# transparency:
# transparency: python="-W error"
# transparency: env=PYTHONDONTWRITEBYTECODE=1
print("never printed")
value = [1, 2
for item in value:
    print(item)
