# KIND: benign SEVERITY: must CLASS: benign STDIN: 2\n1,2\n3,4\n\nend\n EXPECT_OUT: sum_3_sum_7_blank_end_EOF
out = []
for _ in range(int(input())):
    a, b = map(int, input().split(","))
    out.append(f"sum {a + b}")
out.append(input() or "blank")
while True:
    try:
        out.append(input())
    except EOFError:
        out.append("EOF")
        break
print(*out)
