# The three builds of cuda/: on (nvcc), emulated (by g++, on the host), or off.
#
#   taper_cuda(SOURCES kernels.cu softmax.cu runtime.cpp   compiled by nvcc (on) or by g++ (emulated)
#              REAL vmm.cpp                                where it is on
#              EMULATED emulated/runtime.cpp               in the emulated build alone
#              ABSENT absent.cpp)                          instead of all of the above

string(TOLOWER "${TAPER_CUDA}" TAPER_CUDA)
if(TAPER_CUDA STREQUAL "auto")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(TAPER_CUDA on)
  else()
    set(TAPER_CUDA off)
  endif()
  message(STATUS "TAPER_CUDA=auto: ${TAPER_CUDA}")
endif()

if(TAPER_CUDA STREQUAL "on")
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know that nvcc takes C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_package(CUDAToolkit REQUIRED)
  set_target_properties(taper_lib PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
  target_link_libraries(taper_lib PRIVATE CUDA::cudart CUDA::cublas CUDA::cublasLt)
elseif(TAPER_CUDA STREQUAL "emulated")
  # The only place that sees Boost: its fcontext switches the fibers that stand for a block's threads.
  find_package(Boost REQUIRED COMPONENTS context)
  target_link_libraries(taper_lib PRIVATE Boost::context)
elseif(NOT TAPER_CUDA STREQUAL "off")
  message(FATAL_ERROR "TAPER_CUDA=${TAPER_CUDA}: say auto, on, emulated or off")
endif()

# What a target needs whose files see CUDA: the library's cuda/ and the tests in tests/cuda/.
function(taper_cuda_target target)
  if(TAPER_CUDA STREQUAL "on")
    target_link_libraries(${target} PRIVATE CUDA::cudart CUDA::cublas CUDA::cublasLt)
    # 1835: tls_model on the host's thread-locals, of which the device pass knows nothing.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;-diag-suppress=1835;
      -Xcompiler=-Wall,-Wextra,-Wshadow,-Wconversion,-ffp-contract=off;
      $<$<BOOL:${TAPER_WERROR}>:SHELL:--Werror all-warnings>>)
  elseif(TAPER_CUDA STREQUAL "emulated")
    target_compile_options(${target} PRIVATE -fno-math-errno -fno-trapping-math)
    target_compile_definitions(${target} PRIVATE TAPER_CUDA_EMULATED=1)
    target_include_directories(${target} BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/cuda/emulated)
    target_link_libraries(${target} PRIVATE Boost::context)
  endif()
endfunction()

# For g++ a .cu file is C++: CMake then adds -x c++.
function(taper_cuda_files)
  if(TAPER_CUDA STREQUAL "emulated")
    list(FILTER ARGN INCLUDE REGEX "\\.cu$")
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  endif()
endfunction()

function(taper_cuda)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SOURCES;REAL;EMULATED;ABSENT")
  if(TAPER_CUDA STREQUAL "off")
    taper_object_library(cuda ${arg_ABSENT})
    return()
  endif()
  if(TAPER_CUDA STREQUAL "on")
    set(files ${arg_SOURCES} ${arg_REAL})
  else()
    set(files ${arg_SOURCES} ${arg_EMULATED})
  endif()
  taper_object_library(cuda ${files})
  taper_cuda_files(${files})
  taper_cuda_target(taper_cuda)
endfunction()
