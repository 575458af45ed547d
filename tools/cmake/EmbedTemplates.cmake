# Embeds every file of kernels/ into the library as a string, for codegen::templates().
function(mxjit_embed_templates target folder)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/${folder}" "${PROJECT_SOURCE_DIR}/${folder}/*.cuh")
  list(SORT headers)
  set(absolute ${headers})
  list(TRANSFORM absolute PREPEND "${PROJECT_SOURCE_DIR}/${folder}/")
  set(output "${PROJECT_BINARY_DIR}/embedded_templates.cpp")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -DOUTPUT=${output} -DFOLDER=${PROJECT_SOURCE_DIR}/${folder} "-DHEADERS=${headers}" -P
            "${PROJECT_SOURCE_DIR}/tools/cmake/WriteEmbedded.cmake"
    DEPENDS ${absolute} "${PROJECT_SOURCE_DIR}/tools/cmake/WriteEmbedded.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
