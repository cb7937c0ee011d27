# Decides whether runtime/cuda is built: SHARDPLAN_WITH_CUDA, and the target NCCL::nccl where found.
# The planner uses none of it.

set(SHARDPLAN_WITH_CUDA OFF)
if(NOT SHARDPLAN_CUDA)
  message(STATUS "CUDA: off")
  return()
endif()

# CUDA 13 has no nvToolsExt, and the module of CMake 3.25.1 (Debian 12's) deprecates it all the same for projects that ask for
# 3.25, which ends the configuration.
set(required_version ${CMAKE_MINIMUM_REQUIRED_VERSION})
set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
if(SHARDPLAN_CUDA STREQUAL "ON")
  find_package(CUDAToolkit 12.0 REQUIRED)  # the first nvcc that reads C++20
else()
  find_package(CUDAToolkit 12.0 QUIET)
endif()
set(CMAKE_MINIMUM_REQUIRED_VERSION ${required_version})
if(CUDAToolkit_FOUND AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
if(SHARDPLAN_CUDA STREQUAL "AUTO")
  include(CheckLanguage)
  if(CUDAToolkit_FOUND)
    check_language(CUDA)
  endif()
  if(NOT CUDAToolkit_FOUND OR NOT CMAKE_CUDA_COMPILER)
    message(STATUS "CUDA: not found; runtime/cuda is left out")
    return()
  endif()
endif()

# Code for Ampere and Hopper; what is newer compiles Hopper's PTX when it first runs. Unset, CMake would choose 75.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual CACHE STRING "GPU architectures to compile for")
endif()
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know that nvcc speaks C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)

# shardplan_imported(<target> <header> <library>): for libraries that come without a CMake package.
function(shardplan_imported target header library)
  find_path(${library}_INCLUDE_DIR ${header} HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(${library}_LIBRARY ${library} HINTS ${CUDAToolkit_LIBRARY_DIR})
  mark_as_advanced(${library}_INCLUDE_DIR ${library}_LIBRARY)
  if(${library}_INCLUDE_DIR AND ${library}_LIBRARY)
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION ${${library}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${${library}_INCLUDE_DIR})
    message(STATUS "${target}: ${${library}_LIBRARY}")
  else()
    message(STATUS "${target}: not found")
  endif()
endfunction()
shardplan_imported(NCCL::nccl nccl.h nccl)

set(SHARDPLAN_WITH_CUDA ON)
message(STATUS "CUDA: ${CUDAToolkit_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}")
