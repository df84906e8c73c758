# The compiled libraries behind Ample that have no CMake package of their own, as imported targets.
# The build includes this file; a static installation includes it again on the consumer's machine,
# so that no library path of the building machine ends up in the exported targets.
#
#   AmpleDeps::openblas  BLAS and CBLAS
#   AmpleDeps::hwy       Highway: which instruction sets the processor has (version 1.0 or later)
#   AmpleDeps::xxhash    check sums

function(_ample_dependency name header library hint suffixes)
  if(TARGET AmpleDeps::${name})
    return()
  endif()
  find_path(AMPLE_${name}_INCLUDE_DIR ${header} PATH_SUFFIXES ${suffixes})
  find_library(AMPLE_${name}_LIBRARY ${library} PATH_SUFFIXES ${suffixes})
  mark_as_advanced(AMPLE_${name}_INCLUDE_DIR AMPLE_${name}_LIBRARY)
  if(NOT AMPLE_${name}_INCLUDE_DIR OR NOT AMPLE_${name}_LIBRARY)
    message(FATAL_ERROR "Ample needs ${header} and lib${library} (Debian and Ubuntu: ${hint}); "
                        "scripts/setup of the source tree installs them")
  endif()
  add_library(AmpleDeps::${name} UNKNOWN IMPORTED)
  set_target_properties(
    AmpleDeps::${name}
    PROPERTIES IMPORTED_LOCATION "${AMPLE_${name}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                            "${AMPLE_${name}_INCLUDE_DIR}")
endfunction()

_ample_dependency(openblas cblas.h openblas libopenblas-pthread-dev "openblas-pthread;openblas")
_ample_dependency(hwy hwy/highway.h hwy libhwy-dev "")
_ample_dependency(xxhash xxhash.h xxhash libxxhash-dev "")
