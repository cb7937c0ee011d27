# Installed programs look for libraries beside them first, so that an installation can be moved with the libraries in it:
# `cmake --install BUILD --component libraries` puts there what the programs need and a bare system has not. The C library,
# MPI, which finds parts of itself by where it was installed, and CUDA's libraries, which are large and come with the GPU,
# stay the system's.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR} OUTPUT_VARIABLE beside)
set(CMAKE_INSTALL_RPATH $ORIGIN/${beside})
# RPATH, which also serves the libraries of libraries, where RUNPATH does not.
add_link_options(-Wl,--disable-new-dtags)

# install_libraries(<dependency set> <component> <regex of a library that stays the system's>...)
function(install_libraries set component)
  list(TRANSFORM ARGN PREPEND "^" OUTPUT_VARIABLE before)
  list(TRANSFORM ARGN PREPEND "/" OUTPUT_VARIABLE after)
  install(RUNTIME_DEPENDENCY_SET ${set}
    COMPONENT ${component} EXCLUDE_FROM_ALL
    PRE_EXCLUDE_REGEXES "^lib(mpi|open-rte|open-pal|cublas)" "^lib(c|m|dl|rt|pthread)\\.so" "^ld-linux" ${before}
    POST_EXCLUDE_REGEXES "/lib(c|m|dl|rt|pthread)\\.so" "/ld-linux" ${after}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# To be called when all programs are defined.
function(bundle_libraries)
  install_libraries(programs libraries)
endfunction()

# What scripts/gpu-kit packs, as the component `kit`: the programs, the tests that need a GPU, the configs, the scripts,
# and the sources that scripts/gpu-recompile compiles. The compiler's libraries stay the system's: what the kit is used
# beside needs them too (CUDA's compiler, PyTorch), and Debian 12's own would ask for glibc 2.36.
function(kit_contents)
  if(NOT TARGET backends_tests)
    return()
  endif()
  install(TARGETS shardplan shardplan-run shardplan-calibrate backends_tests
    RUNTIME_DEPENDENCY_SET kit RUNTIME COMPONENT kit EXCLUDE_FROM_ALL)
  install_libraries(kit kit "libstdc\\+\\+" "libgcc_s")
  install(TARGETS shardplan-cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT kit EXCLUDE_FROM_ALL)
  install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/shardplan/configs COMPONENT kit EXCLUDE_FROM_ALL)
  install(PROGRAMS scripts/gpu-validate scripts/gpu-report.sh scripts/gpu-report.awk scripts/gpu-baseline.py
    scripts/gpu-recompile
    DESTINATION scripts COMPONENT kit EXCLUDE_FROM_ALL)
  install(DIRECTORY costmodel runtime DESTINATION source COMPONENT kit EXCLUDE_FROM_ALL
    FILES_MATCHING PATTERN *.hpp PATTERN *.cuh PATTERN *.cu)
  if(TARGET NCCL::nccl)  # its licence, BSD's, allows to pass it on
    install(FILES $<TARGET_PROPERTY:NCCL::nccl,INTERFACE_INCLUDE_DIRECTORIES>/nccl.h
      DESTINATION source COMPONENT kit EXCLUDE_FROM_ALL)
  endif()
endfunction()
