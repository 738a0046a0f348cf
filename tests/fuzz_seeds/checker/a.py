import sys

a, b, c = (open(f).read() for f in sys.argv[1:4])
sys.exit(b.split() != c.split())
