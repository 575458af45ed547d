# Language level, warnings and sanitizers, the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET default)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(MXJIT_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, such as address,undefined or thread")
option(MXJIT_WERROR "Treat warnings as errors" ON)
option(MXJIT_FUZZ "Build the libFuzzer targets (clang)" OFF)

add_library(mxjit_warnings INTERFACE)
target_compile_options(mxjit_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                                $<$<BOOL:${MXJIT_WERROR}>:-Werror>)
if(MXJIT_SANITIZE)
  add_compile_options(-fsanitize=${MXJIT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MXJIT_SANITIZE})
endif()
