# The test `consumer`: installs the library, moves the install elsewhere, and builds tests/consumer against it.
# Run by ctest as a script (-P), included by the root file to register itself.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  if(EXISTS ${PROJECT_SOURCE_DIR}/taper.h AND NOT TAPER_SANITIZE)  # a sanitized library needs sanitized users
    add_test(NAME consumer COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DBUILD=${PROJECT_BINARY_DIR}
      -DCOMPILER=${CMAKE_CXX_COMPILER} -DCUDA=${TAPER_CUDA} "-DCOLUMN=$<JOIN:$<TARGET_OBJECTS:taper_cuda>,|>" -P ${CMAKE_CURRENT_LIST_FILE})
    set_tests_properties(consumer PROPERTIES LABELS install TIMEOUT 600)
  endif()
  return()
endif()

set(most_headers 150)
set(most_bytes 10000000)
if(CUDA STREQUAL "emulated")  # a column for tests, which users' builds do not have: it does not count
  string(REPLACE "|" ";" column "${COLUMN}")
  execute_process(COMMAND size -t ${column} OUTPUT_VARIABLE sizes COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "([0-9]+)[ \t]+([0-9]+)[ \t]+[0-9]+[ \t]+[0-9]+[ \t]+[0-9a-f]+[ \t]+.TOTALS" line "${sizes}")
  math(EXPR most_bytes "${most_bytes} + ${CMAKE_MATCH_1} + ${CMAKE_MATCH_2}")  # code and data
endif()
set(work ${BUILD}/consumer)
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/first --strip)
file(RENAME ${work}/first ${work}/moved)
file(GLOB_RECURSE headers ${work}/moved/include/*)
list(LENGTH headers count)
file(GLOB library ${work}/moved/lib*/libtaper.so)
file(REAL_PATH ${library} library)
file(SIZE ${library} bytes)
message("installed: ${count} headers (at most ${most_headers}), libtaper.so of ${bytes} bytes (at most ${most_bytes})")
if(count GREATER most_headers OR bytes GREATER most_bytes)
  message(FATAL_ERROR "the install is over its budget")
endif()
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/consumer -B ${work}/build -DCMAKE_PREFIX_PATH=${work}/moved
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
if(EXISTS ${SOURCE}/torch_compat)
  run(${work}/build/consumer_torch)
endif()
