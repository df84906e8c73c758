"""C++ and Python are one library: the same bits out, and files that each reads of the other."""

import os
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file

import ample

BATCH = 60


@pytest.fixture(scope="module")
def reference():
    path = os.environ.get("AMPLE_REFERENCE")
    if not path:
        pytest.skip("AMPLE_REFERENCE does not name the program built from reference.cc")
    return path


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    X = np.asfortranarray(rng.uniform(-4, 4, size=(180, 3)))
    return X, np.cos(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(180)


def run(reference, folder, X, y, model="-"):
    (folder / "data").write_bytes(
        np.array([*X.shape, BATCH], dtype=np.int64).tobytes() + X.tobytes("F") + y.tobytes()
    )
    out, predictions = folder / "cpp.ample", folder / "predictions"
    subprocess.run([reference, folder / "data", model, out, predictions], check=True)
    return out, np.fromfile(predictions).reshape(2, -1)


def learn(gp, X, y):
    for start in range(0, len(X), BATCH):
        gp.observe(X[start : start + BATCH], y[start : start + BATCH])
    return gp


def new_model():
    return ample.ContinualGP(
        ample.Matern52(lengthscale=1.5) + ample.Constant(0.5), standardize=True
    )


def assert_same(gp, X, predictions):
    mean, variance = gp.predict(X)
    np.testing.assert_array_equal(mean, predictions[0])
    np.testing.assert_array_equal(variance, predictions[1])


@pytest.mark.parametrize("order", ["F", "C"])
def test_the_same_data_give_the_same_bits(reference, data, tmp_path, order):
    X, y = data
    _, predictions = run(reference, tmp_path, X, y)
    gp = learn(new_model(), np.array(X, order=order), y)
    assert_same(gp, np.array(X, order=order), predictions)
    # The test can fail: one more digit in one target is seen.
    y = y.copy()
    y[0] += 1e-9
    with pytest.raises(AssertionError):
        assert_same(learn(new_model(), X, y), X, predictions)


def test_each_loads_the_files_of_the_other_and_goes_on(reference, data, tmp_path):
    X, y = data
    cpp, predictions = run(reference, tmp_path, X[:60], y[:60])
    from_cpp = ample.load(str(cpp))
    assert_same(from_cpp, X[:60], predictions)

    learn(new_model(), X[:60], y[:60]).save(str(tmp_path / "python.ample"))
    _, predictions = run(reference, tmp_path, X[60:], y[60:], tmp_path / "python.ample")
    assert_same(learn(from_cpp, X[60:], y[60:]), X[60:], predictions)


def test_bytes_are_what_a_file_holds(data, tmp_path):
    X, y = data
    gp = learn(new_model(), X, y)
    path = tmp_path / "model.ample"
    gp.save(str(path), notes={"place": "Aarhus"})
    assert gp.to_bytes({"place": "Aarhus"}) == path.read_bytes() != gp.to_bytes()
    same = ample.from_bytes(gp.to_bytes())
    np.testing.assert_array_equal(same.predict(X).mean, gp.predict(X).mean)
    with pytest.raises(ample.ModelFileError):
        ample.from_bytes(gp.to_bytes()[:-1])


def test_safetensors_opens_a_model_file(data, tmp_path):
    X, y = data
    gp = learn(new_model(), X, y)
    path = str(tmp_path / "model.ample")
    gp.save(path, notes={"place": "Aarhus"})
    tensors = load_file(path)
    shapes = {tensor.shape for tensor in tensors.values()}
    assert (gp.size, gp.dimension) in shapes or (gp.dimension, gp.size) in shapes
    assert any(np.array_equal(t, gp.state.c) for t in tensors.values())
    assert ample.load_notes(path) == {"place": "Aarhus"}
