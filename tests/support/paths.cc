#include "paths.h"

namespace ample::paths {

const char* source_dir() { return AMPLE_SOURCE_DIR; }

const char* program() { return AMPLE_PROGRAM; }

const char* reproduce() { return AMPLE_REPRODUCE; }

}  // namespace ample::paths
