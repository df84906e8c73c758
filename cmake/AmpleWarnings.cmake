# ample_warnings(<target>): the warnings that the project keeps itself clean of.
# They become errors with AMPLE_WERROR, which the presets set and a plain build does not: a newer
# compiler's new warning must not stop somebody who only wants to use the library.
function(ample_warnings target)
  target_compile_options(
    ${target}
    PRIVATE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Wold-style-cast
            -Wimplicit-fallthrough
            # A loop that clang leaves scalar, as it does at -O1, is not a defect.
            $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>
            # std::stable_sort of libstdc++ uses a function that libstdc++ calls deprecated, and clang
            # 19 says so at our call.
            $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
            # GCC 12 warns wrongly of `"literal" + std::string` at -O3 (GCC bug 105651).
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
            $<$<BOOL:${AMPLE_WERROR}>:-Werror>)
endfunction()
