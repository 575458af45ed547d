# The digest of kernels/ and src/ that result files carry, as the generated header source_digest.hpp.
# From a shell, in the root: find kernels src -type f | LC_ALL=C sort | xargs sha256sum | sha256sum
function(mxjit_source_digest target)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/kernels/*"
                                                                             "${PROJECT_SOURCE_DIR}/src/*")
  list(SORT files)
  set(absolute ${files})
  list(TRANSFORM absolute PREPEND "${PROJECT_SOURCE_DIR}/")
  set(folder "${PROJECT_BINARY_DIR}/source_digest")
  add_custom_command(
    OUTPUT "${folder}/source_digest.hpp"
    COMMAND "${CMAKE_COMMAND}" -DOUTPUT=${folder}/source_digest.hpp -DROOT=${PROJECT_SOURCE_DIR} "-DFILES=${files}" -P
            "${PROJECT_SOURCE_DIR}/tools/cmake/WriteSourceDigest.cmake"
    DEPENDS ${absolute} "${PROJECT_SOURCE_DIR}/tools/cmake/WriteSourceDigest.cmake"
    VERBATIM)
  add_custom_target(${target}_files DEPENDS "${folder}/source_digest.hpp")
  add_library(${target} INTERFACE)
  target_include_directories(${target} INTERFACE "${folder}")
  add_dependencies(${target} ${target}_files)
endfunction()
