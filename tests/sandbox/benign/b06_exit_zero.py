# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: answer_10
import sys


def main():
    print("answer", sum(range(5)))
    sys.exit(0)


if __name__ == "__main__":
    main()
