# Finds MPI's C interface: MPI_CXX_FOUND, MPI::MPI_CXX, MPIEXEC_EXECUTABLE.

if(NOT SHARDPLAN_MPI)
  message(STATUS "MPI: off")
  return()
endif()
set(MPI_CXX_SKIP_MPICXX TRUE)
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  message(STATUS "MPI: ${MPI_CXX_VERSION}, ${MPIEXEC_EXECUTABLE}")
else()
  message(STATUS "MPI: not found")
endif()
