// What a user of the installed package writes first: it must compile, link and run. The kernel
// matrix is allocated by the library and freed here, which goes wrong if the two disagree about
// Eigen's alignment.
#include <cstring>
#include <iostream>

#include <ample/kernel.h>
#include <ample/version.h>

int main() {
  const ample::Kernel kernel = ample::Kernel::parse("matern52(variance=2, lengthscale=1)");
  const ample::Matrix X = ample::Matrix::Random(7, 2);
  ample::Matrix K = kernel(X, X);
  K.diagonal().array() -= 2.0;
  std::cout << "Ample " << ample::version() << ": K is " << K.rows() << " x " << K.cols() << "\n";
  const bool same_version = std::strcmp(ample::version(), AMPLE_VERSION) == 0;
  return same_version && K.diagonal().norm() < 1e-12 ? 0 : 1;
}
