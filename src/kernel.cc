#include "ample/kernel.h"

#include <algorithm>

#include "check.h"
#include "kernel_types.h"
#include "parallel.h"

namespace ample {
namespace {

NodePtr leaf(LeafKind kind, std::vector<Positive> fields, const Dimensions& dims, int option = 0) {
  return make_leaf(leaf_type(kind), std::move(fields), option, dims);
}

/// The columns of a matrix of `rows` rows, cut into blocks: enough entries in one to hide the cost
/// of a call, few enough that its temporaries stay in the second-level cache. The cut depends on
/// the shape alone, so sums over blocks do not depend on the number of threads.
struct Blocks {
  Index width;
  Index count;
  Index columns;

  Blocks(Index rows, Index cols)
      : width(std::clamp<Index>(32768 / std::max<Index>(rows, 1), 16, 1024)),
        count((cols + width - 1) / width),
        columns(cols) {}

  [[nodiscard]] Index first(Index block) const { return block * width; }
  [[nodiscard]] Index size(Index block) const { return std::min(width, columns - first(block)); }
  /// Blocks of a triangle taken from both ends in turn, so that equal ranges are equal work.
  [[nodiscard]] Index balanced(Index piece) const {
    return piece % 2 == 0 ? piece / 2 : count - 1 - piece / 2;
  }
};

// In units of one vectorised multiply-add: about 8 for the exp, one for each dimension.
double work(Index entries, Index D) {
  return static_cast<double>(entries) * (8.0 + static_cast<double>(D));
}

/// Where a pull-back that runs on several threads puts its results. Blocks are dealt to lanes, each
/// lane sums up in order, and the lanes are summed in order: the shape alone decides every
/// rounding.
class Lanes {
 public:
  Lanes(const PullBack& into, Index num_parameters, Index blocks)
      : into_(into), blocks_(blocks), count_(std::min<Index>(blocks, 16)) {
    if (into.theta != nullptr) {
      if (into.theta->size() != num_parameters) {
        invalid("pull_back: theta has {} entries, but must have {} (the kernel's parameters)",
                into.theta->size(), num_parameters);
      }
      theta_ = Matrix::Zero(num_parameters, count_);
    }
    if (into.X != nullptr) {
      X_.assign(static_cast<std::size_t>(count_), Matrix::Zero(into.X->rows(), into.X->cols()));
    }
  }

  /// Calls job(block, theta, X) for every block; null pointers are not wanted.
  template <class Job>
  void run(double work, const Job& job) {
    parallel_for(count_, workers_for(work), [&](Index lane) {
      double* theta = into_.theta != nullptr ? theta_.col(lane).data() : nullptr;
      Matrix* X = into_.X != nullptr ? &X_[static_cast<std::size_t>(lane)] : nullptr;
      const Index last = blocks_ * (lane + 1) / count_;
      for (Index block = blocks_ * lane / count_; block < last; ++block) job(block, theta, X);
    });
    for (Index lane = 0; lane < theta_.cols(); ++lane) *into_.theta += theta_.col(lane);
    for (const Matrix& part : X_) *into_.X += part;
  }

 private:
  PullBack into_;
  Index blocks_;
  Index count_;
  Matrix theta_;           // [P, lanes]
  std::vector<Matrix> X_;  // one for each lane
};

void check_shape(std::string_view what, const Matrix* adjoint, const MatrixRef& points) {
  if (adjoint != nullptr &&
      (adjoint->rows() != points.rows() || adjoint->cols() != points.cols())) {
    invalid("pull_back: the adjoint of {} is {}×{}, but must be {}×{}", what, adjoint->rows(),
            adjoint->cols(), points.rows(), points.cols());
  }
}

}  // namespace

Kernel::Kernel(const SquaredExponential& k)
    : Kernel(leaf(LeafKind::squared_exponential, {k.variance, k.lengthscale}, k.dims)) {}
Kernel::Kernel(const Matern12& k)
    : Kernel(leaf(LeafKind::matern12, {k.variance, k.lengthscale}, k.dims)) {}
Kernel::Kernel(const Matern32& k)
    : Kernel(leaf(LeafKind::matern32, {k.variance, k.lengthscale}, k.dims)) {}
Kernel::Kernel(const Matern52& k)
    : Kernel(leaf(LeafKind::matern52, {k.variance, k.lengthscale}, k.dims)) {}
Kernel::Kernel(const RationalQuadratic& k)
    : Kernel(leaf(LeafKind::rational_quadratic, {k.variance, k.lengthscale, k.alpha}, k.dims)) {}
Kernel::Kernel(const Periodic& k)
    : Kernel(leaf(LeafKind::periodic, {k.variance, k.lengthscale, k.period}, k.dims)) {}
Kernel::Kernel(const Linear& k) : Kernel(leaf(LeafKind::linear, {k.variance}, k.dims)) {}
Kernel::Kernel(const Polynomial& k)
    : Kernel(leaf(LeafKind::polynomial, {k.variance, k.offset}, k.dims, k.degree)) {}
Kernel::Kernel(const Constant& k) : Kernel(leaf(LeafKind::constant, {k.variance}, {})) {}
Kernel::Kernel(const ArcCosine& k)
    : Kernel(leaf(LeafKind::arc_cosine, {k.variance, k.weight_variance, k.bias_variance}, k.dims,
                  k.order)) {}
Kernel::Kernel(std::shared_ptr<const KernelNode> node)
    : node_(std::move(node)), num_parameters_(node_->num_parameters()) {}

Matrix Kernel::operator()(const MatrixRef& X, const MatrixRef& Z) const {
  Matrix K(X.rows(), Z.rows());
  evaluate(X, Z, K);
  return K;
}

void Kernel::evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const {
  check_columns("kernel", "Z", Z.cols(), X.cols(), "as X");
  check_rows("kernel", "K", K.rows(), X.rows(), "the points of X");
  check_columns("kernel", "K", K.cols(), Z.rows(), "the points of Z");
  check_dimension(X.cols());
  // Loops run down the columns of K: a single row, the real-time case, is computed as a column.
  if (X.rows() == 1 && Z.rows() > 1) {
    Vector column(Z.rows());
    node_->evaluate(Z, X, column);
    K = column.transpose();
    return;
  }
  const Blocks blocks(K.rows(), K.cols());
  parallel_for(blocks.count, workers_for(work(K.size(), X.cols())), [&](Index block) {
    const Index first = blocks.first(block);
    const Index size = blocks.size(block);
    node_->evaluate(X, Z.middleRows(first, size), K.middleCols(first, size));
  });
}

void Kernel::evaluate_lower(const MatrixRef& X, Eigen::Ref<Matrix> K) const {
  check_rows("kernel", "K", K.rows(), X.rows(), "the points of X");
  check_columns("kernel", "K", K.cols(), X.rows(), "the points of X");
  check_dimension(X.cols());
  const Index N = X.rows();
  const Blocks blocks(N, N);
  parallel_for(blocks.count, workers_for(work(K.size() / 2, X.cols())), [&](Index piece) {
    const Index first = blocks.first(blocks.balanced(piece));
    const Index size = blocks.size(blocks.balanced(piece));
    node_->evaluate(X.bottomRows(N - first), X.middleRows(first, size),
                    K.block(first, first, N - first, size));
  });
}

Vector Kernel::diagonal(const MatrixRef& X) const {
  check_dimension(X.cols());
  Vector k(X.rows());
  node_->diagonal(X, k);
  return k;
}

void Kernel::pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                       const PullBack& into) const {
  check_columns("pull_back", "Z", Z.cols(), X.cols(), "as X");
  check_rows("pull_back", "K_bar", K_bar.rows(), X.rows(), "the points of X");
  check_columns("pull_back", "K_bar", K_bar.cols(), Z.rows(), "the points of Z");
  check_dimension(X.cols());
  check_shape("X", into.X, X);
  check_shape("Z", into.Z, Z);
  const Blocks blocks(K_bar.rows(), K_bar.cols());
  Lanes lanes(into, num_parameters_, blocks.count);
  lanes.run(2.0 * work(K_bar.size(), X.cols()), [&](Index block, double* theta, Matrix* X_sum) {
    const Index first = blocks.first(block);
    const Index size = blocks.size(block);
    KernelNode::Adjoint adjoint{theta, nullptr, nullptr};
    std::optional<Eigen::Ref<Matrix>> X_bar;
    std::optional<Eigen::Ref<Matrix>> Z_bar;
    if (X_sum != nullptr) adjoint.X = &X_bar.emplace(*X_sum);
    if (into.Z != nullptr) adjoint.Z = &Z_bar.emplace(into.Z->middleRows(first, size));
    node_->pull_back(X, Z.middleRows(first, size), K_bar.middleCols(first, size), adjoint);
  });
}

void Kernel::pull_back_lower(const MatrixRef& X, const MatrixRef& K_bar,
                             const PullBack& into) const {
  check_rows("pull_back", "K_bar", K_bar.rows(), X.rows(), "the points of X");
  check_columns("pull_back", "K_bar", K_bar.cols(), X.rows(), "the points of X");
  check_dimension(X.cols());
  check_shape("X", into.X, X);
  AMPLE_ASSERT(into.Z == nullptr);
  const Index N = X.rows();
  const Blocks blocks(N, N);
  Lanes lanes(into, num_parameters_, blocks.count);
  lanes.run(work(K_bar.size(), X.cols()), [&](Index piece, double* theta, Matrix* X_sum) {
    const Index block = blocks.balanced(piece);
    const Index first = blocks.first(block);
    const Index size = blocks.size(block);
    // Every pair below the diagonal block stands for two.
    Matrix part = 2.0 * K_bar.block(first, first, N - first, size);
    part.topRows(size) = K_bar.block(first, first, size, size).selfadjointView<Eigen::Lower>();
    KernelNode::Adjoint adjoint{theta, nullptr, nullptr};
    std::optional<Eigen::Ref<Matrix>> rows_bar;
    std::optional<Eigen::Ref<Matrix>> cols_bar;
    if (X_sum != nullptr) {
      adjoint.X = &rows_bar.emplace(X_sum->bottomRows(N - first));
      adjoint.Z = &cols_bar.emplace(X_sum->middleRows(first, size));
    }
    node_->pull_back(X.bottomRows(N - first), X.middleRows(first, size), part, adjoint);
  });
}

void Kernel::pull_back_diagonal(const MatrixRef& X, const VectorRef& k_bar,
                                const PullBack& into) const {
  check_rows("pull_back", "k_bar", k_bar.size(), X.rows(), "the points of X");
  check_dimension(X.cols());
  check_shape("X", into.X, X);
  AMPLE_ASSERT(into.Z == nullptr);
  Lanes lanes(into, num_parameters_, 1);
  lanes.run(0.0, [&](Index, double* theta, Matrix* X_sum) {
    KernelNode::Adjoint adjoint{theta, nullptr, nullptr};
    std::optional<Eigen::Ref<Matrix>> X_bar;
    if (X_sum != nullptr) adjoint.X = &X_bar.emplace(*X_sum);
    node_->pull_back_diagonal(X, k_bar, adjoint);
  });
}

std::vector<Parameter> Kernel::parameters() const {
  std::vector<Parameter> out;
  out.reserve(static_cast<std::size_t>(num_parameters_));
  node_->collect(out);
  return out;
}

Kernel Kernel::with_values(const VectorRef& values) const {
  check_rows("kernel", "the parameter vector", values.size(), num_parameters_,
             "the kernel's parameters");
  const double* next = values.data();
  return Kernel(node_->with_values(next));
}

void Kernel::check_dimension(Index D) const {
  if (D < 1) invalid("kernel: the inputs have no columns");
  node_->check_dimension(D);
}

Kernel Kernel::without_constant() const {
  NodePtr rest = node_->without_constant();
  return rest ? Kernel(std::move(rest)) : *this;
}

std::string Kernel::to_string() const { return node_->to_string(); }

bool operator==(const Kernel& a, const Kernel& b) {
  return a.same_instance(b) ||
         (a.num_parameters_ == b.num_parameters_ && a.to_string() == b.to_string());
}

Kernel operator+(const Kernel& a, const Kernel& b) { return Kernel(make_sum(a.node_, b.node_)); }

Kernel operator*(const Kernel& a, const Kernel& b) {
  return Kernel(make_product(a.node_, b.node_));
}

Kernel operator*(double scale, const Kernel& k) { return Kernel(make_scaled(scale, k.node_)); }

Kernel pow(const Kernel& k, int exponent) { return Kernel(make_power(k.node_, exponent)); }

}  // namespace ample
