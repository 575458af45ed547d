# Installs mxjit into a fresh prefix, looks at what was installed, and builds and runs consumer/ against it.
# A library of the kind that the enclosing build made is installed from there, the other kind is built first.
set(prefix "${WORK}/prefix")
file(REMOVE_RECURSE "${prefix}" "${WORK}/consumer")

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed with ${status}: ${ARGV}")
  endif()
endfunction()

set(common -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}")
if((SHARED AND BUILT_SHARED) OR (NOT SHARED AND NOT BUILT_SHARED))
  run("${CMAKE_COMMAND}" --install "${BUILT}" --prefix "${prefix}")
else()
  run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/build" ${common} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
      -DBUILD_TESTING=OFF -DMXJIT_TOOL=OFF -DMXJIT_FMT_HEADER_ONLY=OFF -DBUILD_SHARED_LIBS=${SHARED} -DMXJIT_CUDA_H=${CUDA_H} -DMXJIT_NVRTC_H=${NVRTC_H})
  run("${CMAKE_COMMAND}" --build "${WORK}/build")
  run("${CMAKE_COMMAND}" --install "${WORK}/build" --prefix "${prefix}")
endif()

# Nothing but the public headers is installed, and all of them.
file(GLOB_RECURSE installed RELATIVE "${prefix}/include" "${prefix}/include/*")
file(GLOB public RELATIVE "${SOURCE}/include" "${SOURCE}/include/mxjit/*.h" "${SOURCE}/include/mxjit/*.hpp")
list(SORT installed)
list(SORT public)
if(NOT installed STREQUAL public)
  message(FATAL_ERROR "installed headers: ${installed}\npublic headers: ${public}")
endif()
file(GLOB_RECURSE libraries RELATIVE "${prefix}" "${prefix}/lib*/libmxjit*")
if(SHARED)
  set(expected "libmxjit\\.so")
else()
  set(expected "libmxjit\\.a")
endif()
if(NOT libraries MATCHES "${expected}")
  message(FATAL_ERROR "no ${expected} among the installed libraries: ${libraries}")
endif()

# Nothing but what symbols.txt lists is for others to link with. A new name belongs there, one that goes or changes
# breaks who uses it.
if(SHARED)
  find_program(NM nm REQUIRED)
  file(GLOB library "${prefix}/lib*/libmxjit.so" "${prefix}/lib*/*/libmxjit.so")
  execute_process(COMMAND "${NM}" --dynamic --defined-only --demangle --format=posix "${library}" OUTPUT_VARIABLE symbols
                  COMMAND_ERROR_IS_FATAL ANY)
  # A name, then its type: a weak symbol or not is the compiler's choice.
  string(REGEX REPLACE " [A-Za-z] [0-9a-f]+ [0-9a-f]*\n" "\n" symbols "${symbols}")
  file(WRITE "${WORK}/symbols.txt" "${symbols}")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C sort -u INPUT_FILE "${WORK}/symbols.txt" OUTPUT_FILE "${WORK}/exported.txt"
                  COMMAND_ERROR_IS_FATAL ANY)
  run(diff -u "${SOURCE}/tests/install/symbols.txt" "${WORK}/exported.txt")
endif()

# The example that README.md shows is what the consumer calls.
file(READ "${SOURCE}/README.md" readme)
string(FIND "${readme}" "```cpp\n" begin)
if(begin EQUAL -1)
  message(FATAL_ERROR "README.md holds no C++ example")
endif()
math(EXPR begin "${begin} + 7")
string(SUBSTRING "${readme}" ${begin} -1 example)
string(FIND "${example}" "```" end)
string(SUBSTRING "${example}" 0 ${end} example)
file(WRITE "${WORK}/consumer/example.cpp" "${example}")

run("${CMAKE_COMMAND}" -S "${SOURCE}/tests/install/consumer" -B "${WORK}/consumer" ${common}
    "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_BUILD_TYPE=Debug)
run("${CMAKE_COMMAND}" --build "${WORK}/consumer")
run("${WORK}/consumer/consumer")
run("${WORK}/consumer/consumer_c")
