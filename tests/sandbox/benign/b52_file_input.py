# KIND: benign SEVERITY: must CLASS: benign STDIN: 3\nab\nc\nd\n EXPECT_OUT: ['3',_'ab',_'c',_'d']_2
import csv
import fileinput

lines = [line.rstrip("\n") for line in fileinput.input("-")]
with open("x.csv", "w", newline="") as file:
    csv.writer(file).writerows([["a", "b,c"], [1, 'say "x"']])
with fileinput.input("x.csv", inplace=True) as file:
    for line in file:
        print(line.upper(), end="")
print(lines, len(list(csv.reader(open("x.csv", newline="")))))
