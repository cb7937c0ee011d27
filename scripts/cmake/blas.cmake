# What multiplies matrices on the CPU: SHARDPLAN_GEMM is onednn, openblas or eigen, as SHARDPLAN_BLAS asks for. A target
# shardplan_blas holds what that needs; it is absent for eigen, which the CPU kernels need anyway.
set(SHARDPLAN_BLAS AUTO CACHE STRING "Products of the CPU runtime: AUTO (the first found), ONEDNN, OPENBLAS, EIGEN")
set_property(CACHE SHARDPLAN_BLAS PROPERTY STRINGS AUTO ONEDNN OPENBLAS EIGEN)
set(SHARDPLAN_GEMM eigen)

if(SHARDPLAN_BLAS MATCHES "^(AUTO|ONEDNN)$")
  find_path(DNNL_INCLUDE_DIR dnnl.h)
  find_library(DNNL_LIBRARY dnnl)
  find_library(GOMP_LIBRARY NAMES libgomp.so.1)  # whose threads Debian's oneDNN uses
  mark_as_advanced(DNNL_INCLUDE_DIR DNNL_LIBRARY GOMP_LIBRARY)
  if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
    set(SHARDPLAN_GEMM onednn)
    add_library(shardplan_blas INTERFACE)
    target_include_directories(shardplan_blas SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
    target_link_libraries(shardplan_blas INTERFACE ${DNNL_LIBRARY})
    if(GOMP_LIBRARY)
      target_link_libraries(shardplan_blas INTERFACE ${GOMP_LIBRARY})
      target_compile_definitions(shardplan_blas INTERFACE RUNTIME_CPU_OPENMP)
    endif()
  endif()
endif()

if(SHARDPLAN_GEMM STREQUAL "eigen" AND SHARDPLAN_BLAS MATCHES "^(AUTO|OPENBLAS)$")
  find_path(OPENBLAS_INCLUDE_DIR openblas_config.h
            PATH_SUFFIXES openblas-pthread openblas openblas-openmp openblas-serial
                          ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread)
  find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
  mark_as_advanced(OPENBLAS_INCLUDE_DIR OPENBLAS_LIBRARY)
  if(OPENBLAS_INCLUDE_DIR AND OPENBLAS_LIBRARY)
    set(SHARDPLAN_GEMM openblas)
    add_library(shardplan_blas INTERFACE)
    target_include_directories(shardplan_blas SYSTEM INTERFACE ${OPENBLAS_INCLUDE_DIR})
    target_link_libraries(shardplan_blas INTERFACE ${OPENBLAS_LIBRARY})
  endif()
endif()

if(SHARDPLAN_BLAS MATCHES "^(ONEDNN|OPENBLAS)$" AND SHARDPLAN_GEMM STREQUAL "eigen")
  message(FATAL_ERROR "SHARDPLAN_BLAS=${SHARDPLAN_BLAS}, and it was not found")
endif()
message(STATUS "Matrix products on the CPU: ${SHARDPLAN_GEMM}")
