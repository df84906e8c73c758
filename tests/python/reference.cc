// The C++ side of test_same_bits.py: learns from batches, saves the model and predicts.
//
//   reference DATA MODEL_IN|- MODEL_OUT PREDICTIONS
//
// DATA: rows, columns and batch size as int64, then X by columns and y, as doubles. PREDICTIONS:
// mean and variance at X, as doubles. A MODEL_IN is loaded and goes on learning.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

#include "ample/continual_gp.h"
#include "ample/snapshot.h"

namespace {

void read(std::ifstream& in, void* to, ample::Index bytes) {
  if (!in.read(static_cast<char*>(to), bytes)) throw std::runtime_error("DATA is too short");
}

void write(std::ofstream& out, const ample::Vector& values) {
  out.write(reinterpret_cast<const char*>(values.data()),
            values.size() * static_cast<ample::Index>(sizeof(double)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  std::ifstream in(argv[1], std::ios::binary);
  std::int64_t shape[3];
  read(in, shape, sizeof shape);
  ample::Matrix X(shape[0], shape[1]);
  ample::Vector y(shape[0]);
  read(in, X.data(), X.size() * static_cast<ample::Index>(sizeof(double)));
  read(in, y.data(), y.size() * static_cast<ample::Index>(sizeof(double)));

  ample::ContinualGPOptions options;
  options.start.kernel = ample::Matern52{.lengthscale = 1.5} + ample::Constant{0.5};
  options.scaling = ample::Standardize::first_batch;
  const std::string model = argv[2];
  ample::ContinualGP gp = model == "-" ? ample::ContinualGP(options) : ample::load(model);
  for (ample::Index start = 0; start < shape[0]; start += shape[2]) {
    const ample::Index n = std::min<ample::Index>(shape[2], shape[0] - start);
    gp.observe(X.middleRows(start, n), y.segment(start, n));
  }
  ample::save(gp, argv[3]);
  const ample::Prediction p = gp.predict(X);
  std::ofstream out(argv[4], std::ios::binary);
  write(out, p.mean);
  write(out, p.variance);
  return out.flush() ? 0 : 1;
}
