// An MPI that lets one thread call it, whatever is asked for: linked into a program, this takes the
// place of the library's own.
#include <mpi.h>

int MPI_Init_thread(int* count, char*** arguments, int, int* provided) {
  return PMPI_Init_thread(count, arguments, MPI_THREAD_FUNNELED, provided);
}
