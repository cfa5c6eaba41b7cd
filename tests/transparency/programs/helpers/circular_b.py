from helpers.circular_a import A

B = A + 1
