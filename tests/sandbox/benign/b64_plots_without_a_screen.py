# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: drawing_works
import importlib.util
import os

if importlib.util.find_spec("matplotlib"):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.plot([1, 2, 3])
    plt.savefig("plot.png")
    assert os.path.getsize("plot.png") > 1000
if importlib.util.find_spec("PIL"):
    from PIL import Image

    Image.new("RGB", (10, 10), "red").save("red.png")
    assert Image.open("red.png").getpixel((0, 0)) == (255, 0, 0)
print("drawing works")
