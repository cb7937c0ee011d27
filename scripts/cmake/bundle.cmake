# Installed programs look for libraries beside them first, so that an installation can be moved with the libraries in it:
# `cmake --install BUILD --component libraries` puts there what the programs need and a bare system has not. The C library,
# MPI, which finds parts of itself by where it was installed, and CUDA's libraries, which are large and come with the GPU,
# stay the system's.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR} OUTPUT_VARIABLE beside)
set(CMAKE_INSTALL_RPATH $ORIGIN/${beside})
# RPATH, which also serves the libraries of libraries, where RUNPATH does not.
add_link_options(-Wl,--disable-new-dtags)

# To be called when all programs are defined.
function(bundle_libraries)
  install(RUNTIME_DEPENDENCY_SET programs
    COMPONENT libraries EXCLUDE_FROM_ALL
    PRE_EXCLUDE_REGEXES "^lib(mpi|open-rte|open-pal)" "^lib(c|m|dl|rt|pthread)\\.so" "^ld-linux"
    POST_EXCLUDE_REGEXES "/lib(c|m|dl|rt|pthread)\\.so" "/ld-linux"
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries EXCLUDE_FROM_ALL)
endfunction()
