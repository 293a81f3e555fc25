# The functions by which a folder's CMakeLists.txt lists its files, and the flags each kind of file gets.
#
#   taper_folder(core tensor.cpp storage.cpp)       object library taper_core, part of libtaper.so
#   taper_kernels(softmax.cpp reduce.cpp)           each file once per instruction set of TAPER_ISAS
#   taper_program(taper main.cpp LIBRARIES x::x)    a program of ours, linked to the library
#   taper_test(core/layout_test.cpp testing.cpp)    one GoogleTest program per sub-folder of tests/
#   taper_example(stride_quiz ARGS --answers)       examples/stride_quiz.cpp, run as a test with these arguments

# --- flags ---------------------------------------------------------------------------------------------------

add_library(taper_warnings INTERFACE)
target_compile_options(taper_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
  -Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wsign-conversion;-Wold-style-cast;-Wnon-virtual-dtor;
  -Woverloaded-virtual;-Wcast-qual;-Wimplicit-fallthrough;-Wundef;-Wdouble-promotion;
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond;-Wlogical-op>;$<$<BOOL:${TAPER_WERROR}>:-Werror>>)

# What all code of ours is compiled with. No contraction anywhere: a fused multiply-add is written fma(), so that
# the two machines, and a test's own arithmetic, agree to the bit.
add_library(taper_code INTERFACE)
target_link_libraries(taper_code INTERFACE taper_warnings Threads::Threads)
target_include_directories(taper_code INTERFACE ${PROJECT_BINARY_DIR}/include)
target_compile_options(taper_code INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off;$<$<CONFIG:RelWithDebInfo>:-g1>>)
if(TAPER_SANITIZE)
  target_compile_options(taper_code INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TAPER_SANITIZE};
    -fno-sanitize-recover=all;-fno-omit-frame-pointer>)
  target_link_options(taper_code INTERFACE -fsanitize=${TAPER_SANITIZE})
  target_link_options(taper_lib PRIVATE -fsanitize=${TAPER_SANITIZE})
endif()
if(TAPER_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "TAPER_FUZZ needs clang++, which has libFuzzer; this is ${CMAKE_CXX_COMPILER}")
  endif()
  target_compile_options(taper_code INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()

# What the library's own files see besides: its dependencies, and which instruction sets were compiled.
add_library(taper_internal INTERFACE)
target_link_libraries(taper_internal INTERFACE taper_code spdlog::spdlog ZLIB::ZLIB nlohmann_json::nlohmann_json)
target_include_directories(taper_internal SYSTEM INTERFACE ${TAPER_OPENBLAS_INCLUDE})
target_compile_options(taper_internal INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
  -fno-semantic-interposition;-ffunction-sections;-fdata-sections>)
target_link_libraries(taper_lib PRIVATE
  $<BUILD_INTERFACE:spdlog::spdlog> ZLIB::ZLIB Threads::Threads ${TAPER_OPENBLAS_LIBRARY})

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(isas baseline avx2 avx512)
  if(TAPER_SANITIZE)  # one wide body is enough there, and these compile slowly
    set(isas baseline avx2)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(isas neon)
else()
  set(isas baseline)
endif()
set(TAPER_ISAS "${isas}" CACHE STRING "Instruction sets that the CPU kernels are compiled for")
# For machines without AVX2, which no figure is about: -O3 would make its code 2.6 times as large, 1.6 MB of the library.
set(TAPER_FLAGS_baseline -O2 -ftree-vectorize -fvect-cost-model=dynamic)
set(TAPER_FLAGS_neon)
set(TAPER_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(TAPER_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)
set(TAPER_KERNEL_FLAGS -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off -fno-semantic-interposition)

# --- folders of the library ----------------------------------------------------------------------------------

function(taper_add_folder folder)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${PROJECT_SOURCE_DIR}/${folder})
  endif()
endfunction()

# Adds files to the object library taper_<name>, which is made on first use.
function(taper_object_library name)
  if(TARGET taper_${name})
    target_sources(taper_${name} PRIVATE ${ARGN})
    return()
  endif()
  add_library(taper_${name} OBJECT ${ARGN})
  target_link_libraries(taper_${name} PRIVATE taper_internal)
  target_sources(taper_lib PRIVATE $<TARGET_OBJECTS:taper_${name}>)
endfunction()

function(taper_folder folder)
  taper_object_library(${folder} ${ARGN})
endfunction()

# Files of the calling folder that run seldom, and are compiled to be small: mostly messages and reports.
function(taper_seldom)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS "$<$<CONFIG:RelWithDebInfo>:-Os>")
endfunction()

# Kernel files get TAPER_ISA, the name of their namespace, and the same optimisation in every preset: what they
# compute must not depend on the build type.
add_custom_target(taper_kernel_objects)
function(taper_kernels)
  foreach(isa IN LISTS TAPER_ISAS)
    string(TOUPPER ${isa} upper)
    target_compile_definitions(taper_cpu PRIVATE TAPER_HAVE_${upper}=1)  # dispatch.cpp picks among them
    set(fresh TRUE)
    if(TARGET taper_kernels_${isa})
      set(fresh FALSE)
    endif()
    taper_object_library(kernels_${isa} ${ARGN})
    if(fresh)
      target_compile_definitions(taper_kernels_${isa} PRIVATE TAPER_ISA=${isa})
      target_compile_options(taper_kernels_${isa} PRIVATE ${TAPER_KERNEL_FLAGS} ${TAPER_FLAGS_${isa}})
      add_dependencies(taper_kernel_objects taper_kernels_${isa})
    endif()
  endforeach()
endfunction()

# --- what stands on the library ------------------------------------------------------------------------------

function(taper_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE Taper::taper taper_code ${arg_LIBRARIES})
endfunction()

# tests/<folder>/x_test.cpp goes into the program taper_test_<folder>; a file of tests/ itself, into every one.
# Lightly optimised in release: they compile once and run once.
function(taper_test)
  find_package(GTest REQUIRED)
  if(NOT TARGET taper_test_support)
    add_library(taper_test_support INTERFACE)
    target_link_libraries(taper_test_support INTERFACE Taper::taper taper_code GTest::gtest ZLIB::ZLIB
      nlohmann_json::nlohmann_json ${TAPER_OPENBLAS_LIBRARY})
    target_include_directories(taper_test_support SYSTEM INTERFACE ${TAPER_OPENBLAS_INCLUDE})
    target_compile_options(taper_test_support INTERFACE $<$<AND:$<CONFIG:RelWithDebInfo>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
    target_compile_definitions(taper_test_support INTERFACE TAPER_TESTS_DIR="${PROJECT_SOURCE_DIR}/tests")
  endif()
  foreach(file IN LISTS ARGN)
    get_filename_component(folder ${file} DIRECTORY)
    if(NOT folder)
      target_sources(taper_test_support INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/${file})
      continue()
    endif()
    string(REPLACE "/" "_" name ${folder})
    if(name MATCHES "^cuda" AND TAPER_CUDA STREQUAL "off")
      continue()
    endif()
    if(NOT TARGET taper_test_${name})
      add_executable(taper_test_${name})
      target_link_libraries(taper_test_${name} PRIVATE taper_test_support GTest::gtest_main)
      if(name MATCHES "^cuda")
        taper_cuda_target(taper_test_${name})
        if(TAPER_CUDA STREQUAL "on")
          target_sources(taper_test_${name} PRIVATE cuda/no_device.cpp)
        endif()
      endif()
      add_test(NAME ${name} COMMAND taper_test_${name})
      set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 1800
        ENVIRONMENT "GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/${name}.xml")
      if(name MATCHES "^cuda" AND TAPER_CUDA STREQUAL "emulated")
        set_property(TEST ${name} APPEND PROPERTY LABELS cuda-emulated)
      endif()
    endif()
    target_sources(taper_test_${name} PRIVATE ${file})
    taper_cuda_files(${file})
  endforeach()
endfunction()

function(taper_example name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ARGS")
  add_executable(${name} ${name}.cpp)
  target_link_libraries(${name} PRIVATE Taper::taper taper_code)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/examples)
  if(TAPER_BUILD_TESTS)
    add_test(NAME example/${name} COMMAND ${name} ${arg_ARGS})
    set_tests_properties(example/${name} PROPERTIES LABELS example TIMEOUT 600 SKIP_RETURN_CODE 77)
  endif()
endfunction()
