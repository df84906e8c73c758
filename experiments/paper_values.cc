#include "paper_values.h"

#include <stdexcept>

namespace ample::experiments {
namespace {

struct Row {
  Metric metric;
  double percent;
  int outliers;
  const char* data;
  PaperCell vips;
  PaperCell cv;
  std::optional<PaperCell> oips;
};

struct Points {
  Metric metric;
  double percent;
  int outliers;
  double vips;
  double cv;
  std::optional<double> oips;
};

constexpr auto kRmse = Metric::rmse;
constexpr auto kNlpd = Metric::nlpd;
constexpr auto kNone = std::nullopt;

// clang-format off
const std::vector<Row>& rows() {
  using Oips = PaperCell;
  static const std::vector<Row> table{
      {kRmse, 5, 0, "concrete", {434, 79, 3.67}, {492, 54, 3.28}, kNone},
      {kRmse, 5, 1, "concrete", {317, 101, 4.24}, {321, 71, 4.65}, Oips{383, 90, 4.89}},
      {kRmse, 5, 2, "concrete", {163, 95, 10.43}, {70, 5, 13.34}, Oips{257, 106, 8.84}},
      {kRmse, 5, 0, "skillcraft", {177, 13, 0.14}, {739, 34, 0.02}, kNone},
      {kRmse, 5, 1, "skillcraft", {135, 1, 0.21}, {312, 15, 0.04}, Oips{236, 38, 0.07}},
      {kRmse, 5, 2, "skillcraft", {133, 0, 0.13}, {130, 56, 1.45}, Oips{185, 21, 0.02}},
      {kRmse, 5, 0, "kin8nm", {4281, 69, 0.15}, {6316, 9, 0.11}, kNone},
      {kRmse, 5, 1, "kin8nm", {2513, 54, 1.35}, {5685, 26, 0.13}, Oips{6523, 9, 0.12}},
      {kRmse, 5, 2, "kin8nm", {1356, 42, 4.97}, {5334, 27, 0.13}, Oips{6499, 10, 0.12}},
      {kRmse, 5, 0, "naval", {373, 19, 0.40}, {49, 1, 2.39}, kNone},
      {kRmse, 5, 1, "naval", {86, 3, 1.37}, {23, 7, 79.08}, Oips{20, 1, 407.22}},
      {kRmse, 5, 2, "naval", {43, 2, 2.67}, {21, 5, 336.08}, Oips{20, 1, 407.22}},
      {kRmse, 5, 0, "elevators", {438, 17, 1.19}, {3133, 140, 0.31}, kNone},
      {kRmse, 5, 1, "elevators", {312, 5, 1.33}, {1194, 42, 0.85}, Oips{386, 47, 1.19}},
      {kRmse, 5, 2, "elevators", {276, 4, 1.55}, {536, 22, 1.43}, Oips{305, 13, 1.49}},
      {kRmse, 5, 0, "bike", {2296, 138, 4.61}, {7000, 0, 0.58}, kNone},
      {kRmse, 5, 1, "bike", {853, 19, 8.73}, {5563, 36, 1.02}, Oips{3916, 122, 2.19}},
      {kRmse, 5, 2, "bike", {498, 10, 11.24}, {3940, 41, 1.80}, Oips{2438, 130, 4.23}},

      {kRmse, 10, 0, "concrete", {234, 116, 7.66}, {492, 54, 3.28}, kNone},
      {kRmse, 10, 1, "concrete", {178, 95, 9.81}, {184, 74, 9.96}, Oips{240, 102, 9.03}},
      {kRmse, 10, 2, "concrete", {111, 37, 12.93}, {3, 2, 126.81}, Oips{108, 66, 20.79}},
      {kRmse, 10, 0, "skillcraft", {134, 0, 0.12}, {739, 34, -0.02}, kNone},
      {kRmse, 10, 1, "skillcraft", {133, 0, 0.13}, {226, 22, 0.20}, Oips{174, 16, 0.04}},
      {kRmse, 10, 2, "skillcraft", {133, 0, 0.12}, {17, 0, 7.93}, Oips{138, 1, 0.06}},
      {kRmse, 10, 0, "kin8nm", {1904, 51, 2.55}, {6316, 9, 0.11}, kNone},
      {kRmse, 10, 1, "kin8nm", {1563, 39, 3.77}, {5334, 27, 0.13}, Oips{6458, 8, 0.11}},
      {kRmse, 10, 2, "kin8nm", {949, 25, 8.17}, {3408, 32, 0.19}, Oips{5053, 93, 0.14}},
      {kRmse, 10, 0, "naval", {57, 1, 2.25}, {49, 1, 2.39}, kNone},
      {kRmse, 10, 1, "naval", {48, 3, 2.57}, {23, 8, 323.90}, Oips{16, 1, 315.28}},
      {kRmse, 10, 2, "naval", {38, 1, 5.07}, {19, 3, 553.11}, Oips{13, 1, 407.6}},
      {kRmse, 10, 0, "elevators", {291, 4, 1.41}, {3133, 140, 0.31}, kNone},
      {kRmse, 10, 1, "elevators", {281, 4, 1.51}, {836, 27, 1.11}, Oips{298, 8, 1.49}},
      {kRmse, 10, 2, "elevators", {267, 2, 1.57}, {287, 18, 2.52}, Oips{269, 1, 1.59}},
      {kRmse, 10, 0, "bike", {650, 17, 9.98}, {7000, 0, 0.58}, kNone},
      {kRmse, 10, 1, "bike", {549, 14, 10.82}, {4895, 28, 1.29}, Oips{1964, 137, 5.18}},
      {kRmse, 10, 2, "bike", {400, 7, 12.50}, {2582, 66, 4.22}, Oips{594, 11, 10.00}},

      {kNlpd, 5, 1, "concrete", {514, 74, 2.27}, {417, 63, 4.28}, Oips{490, 73, 4.72}},
      {kNlpd, 5, 2, "concrete", {451, 77, 4.43}, {227, 84, 15.84}, Oips{410, 88, 8.34}},
      {kNlpd, 5, 1, "skillcraft", {291, 34, 0.60}, {439, 29, 0.60}, Oips{488, 119, 0.53}},
      {kNlpd, 5, 2, "skillcraft", {195, 18, 0.78}, {260, 16, 0.81}, Oips{332, 82, 0.51}},
      {kNlpd, 5, 1, "kin8nm", {5640, 73, 0.85}, {6194, 12, 0.88}, Oips{6547, 8, 0.88}},
      {kNlpd, 5, 2, "kin8nm", {5065, 46, 0.94}, {5334, 27, 0.90}, Oips{6539, 8, 0.88}},
      {kNlpd, 5, 1, "naval", {1389, 18, 5.48}, {27, 5, 4654.12}, Oips{26, 1, 115.29}},
      {kNlpd, 5, 2, "naval", {509, 15, 9.99}, {28, 4, 8146.44}, Oips{20, 1, 133.87}},
      {kNlpd, 5, 1, "elevators", {740, 24, 1.74}, {1814, 88, 1.23}, Oips{1869, 257, 1.34}},
      {kNlpd, 5, 2, "elevators", {487, 24, 2.02}, {916, 21, 1.91}, Oips{642, 133, 2.01}},
      {kNlpd, 5, 1, "bike", {5064, 334, 3.99}, {7000, 0, 2.13}, Oips{6794, 79, 2.55}},
      {kNlpd, 5, 2, "bike", {2794, 148, 8.18}, {4895, 28, 3.54}, Oips{5131, 64, 4.05}},

      {kNlpd, 10, 0, "concrete", {451, 77, 4.43}, {492, 54, 2.32}, kNone},
      {kNlpd, 10, 1, "concrete", {434, 79, 5.68}, {303, 78, 9.64}, Oips{383, 90, 9.56}},
      {kNlpd, 10, 2, "concrete", {349, 86, 9.04}, {3, 2, 118.71}, Oips{247, 101, 15.73}},
      {kNlpd, 10, 0, "skillcraft", {195, 18, 0.78}, {1091, 107, -0.34}, kNone},
      {kNlpd, 10, 1, "skillcraft", {177, 13, 0.78}, {295, 13, 0.71}, Oips{236, 38, 0.57}},
      {kNlpd, 10, 2, "skillcraft", {141, 4, 1.10}, {54, 45, 8.03}, Oips{185, 21, 0.68}},
      {kNlpd, 10, 0, "kin8nm", {5065, 46, 0.94}, {6469, 7, 0.87}, kNone},
      {kNlpd, 10, 1, "kin8nm", {4281, 69, 0.34}, {5685, 26, 0.91}, Oips{6523, 9, 0.88}},
      {kNlpd, 10, 2, "kin8nm", {2953, 71, 1.89}, {5334, 27, 0.90}, Oips{6499, 10, 0.88}},
      {kNlpd, 10, 0, "naval", {509, 15, 9.99}, {903, 8, 6.17}, kNone},
      {kNlpd, 10, 1, "naval", {373, 19, 11.92}, {27, 6, 2405.87}, Oips{20, 1, 133.87}},
      {kNlpd, 10, 2, "naval", {126, 6, 22.95}, {22, 7, 6012.82}, Oips{20, 1, 133.87}},
      {kNlpd, 10, 0, "elevators", {487, 24, 2.02}, {3133, 140, 0.82}, kNone},
      {kNlpd, 10, 1, "elevators", {438, 17, 2.11}, {1099, 50, 1.73}, Oips{386, 47, 2.68}},
      {kNlpd, 10, 2, "elevators", {332, 8, 2.54}, {352, 29, 3.76}, Oips{305, 13, 4.84}},
      {kNlpd, 10, 0, "bike", {2794, 148, 8.18}, {7000, 0, 2.04}, kNone},
      {kNlpd, 10, 1, "bike", {2296, 138, 9.92}, {5563, 36, 2.95}, Oips{3916, 122, 5.50}},
      {kNlpd, 10, 2, "bike", {1037, 23, 17.16}, {2582, 66, 9.61}, Oips{2438, 130, 9.66}},
  };
  return table;
}

// From the captions. Two of them do not fit the tables: OIPS at 5 % RMSE and one outlier has the
// sizes of 10 % NLPD and one outlier, 0.955 against 0.95; CV at 10 % NLPD and none, 0.001, has on
// Concrete and Elevators the sizes of 0.005.
const std::vector<Points>& points() {
  static const std::vector<Points> table{
      {kRmse, 5, 0, 0.02, 0.005, kNone},
      {kRmse, 5, 1, 0.065, 0.06, 0.955},
      {kRmse, 5, 2, 0.14, 0.5, 0.935},
      {kRmse, 10, 0, 0.095, 0.005, kNone},
      {kRmse, 10, 1, 0.12, 0.13, 0.93},
      {kRmse, 10, 2, 0.2, 0.6, 0.845},
      {kNlpd, 5, 1, 0.005, 0.025, 0.975},
      {kNlpd, 5, 2, 0.015, 0.1, 0.96},
      {kNlpd, 10, 0, 0.015, 0.001, kNone},
      {kNlpd, 10, 1, 0.02, 0.07, 0.95},
      {kNlpd, 10, 2, 0.05, 0.5, 0.935},
  };
  return table;
}
// clang-format on

template <class T>
bool fits(const T& row, const Criterion& c) {
  return row.metric == c.metric && row.percent == c.percent && row.outliers == c.outliers;
}

}  // namespace

std::optional<PaperCell> paper_cell(const Criterion& criterion, const std::string& data,
                                    const std::string& method) {
  for (const Row& row : rows()) {
    if (!fits(row, criterion) || row.data != data) continue;
    return method == "vips" ? row.vips : method == "cv" ? row.cv : row.oips;
  }
  return std::nullopt;
}

std::optional<double> paper_operating_point(const Criterion& criterion, const std::string& method) {
  for (const Points& row : points()) {
    if (!fits(row, criterion)) continue;
    return method == "vips" ? row.vips : method == "cv" ? row.cv : row.oips;
  }
  return std::nullopt;
}

std::optional<double> paper_naval_seconds(const std::string& method, double parameter) {
  if (method == "vips" && parameter == 0.05) return 15.2;
  if (method == "fixed-greedy" && parameter == 100) return 24.7;
  if (method == "fixed-greedy" && parameter == 1000) return 424.3;
  return std::nullopt;
}

PaperMagnetic paper_magnetic(const std::string& method) {
  if (method == "vips") return {{5, 32, 66, 101, 134}, 7.55};
  if (method == "cv") return {{12, 597, 2206, 4071, 5785}, 10.66};
  if (method == "oips") return {{10, 27, 43, 59, 76}, 9.42};
  throw std::logic_error("the paper has no '" + method + "' on the magnetic field");
}

}  // namespace ample::experiments
