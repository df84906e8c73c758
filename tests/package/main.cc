// What a user of the installed package writes first: it must compile, link and run.
#include <ample/types.h>
#include <ample/version.h>

#include <cstring>
#include <iostream>

int main() {
  ample::Batch batch{ample::Matrix::Random(8, 2), ample::Vector::Ones(8)};
  std::cout << "Ample " << ample::version() << ": " << batch.X.rows() << " rows\n";
  return std::strcmp(ample::version(), AMPLE_VERSION) == 0 ? 0 : 1;
}
