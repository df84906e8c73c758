// Where the tests find the source tree and the program.
#pragma once

namespace ample::paths {

/// The root of the source tree.
const char* source_dir();

/// The programs `ample` and `ample-reproduce` of this build.
const char* program();
const char* reproduce();

}  // namespace ample::paths
