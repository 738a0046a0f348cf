# KIND: benign SEVERITY: must CLASS: benign EXPECT_OUT: pandas_works
import importlib.util
import io

if importlib.util.find_spec("pandas"):
    import pandas as pd

    table = pd.read_csv(io.StringIO("city,day,rain\nOslo,2024-01-01,3\nRome,2024-01-01,0\nOslo,2024-01-02,5\n"))
    table["day"] = pd.to_datetime(table["day"])
    sums = table.groupby("city")["rain"].sum()
    wide = table.pivot_table(index="day", columns="city", values="rain", aggfunc="mean")
    joined = table.merge(pd.DataFrame({"city": ["Oslo", "Rome"], "country": ["NO", "IT"]}), on="city")
    joined.to_csv("joined.csv", index=False)
    assert sums.to_dict() == {"Oslo": 8, "Rome": 0} and wide.shape == (2, 2)
    assert len(pd.read_csv("joined.csv")) == 3 and table["rain"].rolling(2).mean().iloc[-1] == 2.5
    assert table.set_index("day")["rain"].resample("1D").sum().tolist() == [3, 5]
print("pandas works")
