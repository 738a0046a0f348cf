# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: line_9999_the_end
for number in range(10_000):
    print("line", number, end=" the end\n" if number == 9999 else "\n")
