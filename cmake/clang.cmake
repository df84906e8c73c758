# Toolchain: clang 19, which the project's checks are tuned for, else the newest clang there is.
set(_versions 19 22 21 20 18 17 16 15 14)
list(TRANSFORM _versions PREPEND clang++- OUTPUT_VARIABLE _names)
find_program(AMPLE_CLANGXX NAMES ${_names} clang++ REQUIRED)
set(CMAKE_CXX_COMPILER "${AMPLE_CLANGXX}")
