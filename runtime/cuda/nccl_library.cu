#include "runtime/cuda/nccl_library.hpp"

#include "runtime/backend/loaded_library.hpp"
#include "runtime/cuda/nccl_fabric.hpp"

namespace runtime::cuda {

#ifndef SHARDPLAN_WITH_NCCL

namespace {
constexpr const char* none = "this program was built without NCCL's header";
}
std::string nccl_missing_in(const char*) { return none; }
std::string nccl_missing() { return none; }
int nccl_version() { return 0; }

#else

NcclLibrary load_nccl(const char* file) {
  LoadedLibrary nccl("NCCL", file, ": it is older than this program");
  NcclLibrary library;
  nccl.find("ncclGetVersion", library.version);
  nccl.find("ncclGetErrorString", library.error_string);
  nccl.find("ncclGetLastError", library.last_error);
  nccl.find("ncclGetUniqueId", library.unique_id);
  nccl.find("ncclCommInitRankConfig", library.init);
  nccl.find("ncclCommSplit", library.split);
  nccl.find("ncclCommGetAsyncError", library.async_error);
  nccl.find("ncclCommFinalize", library.finalize);
  nccl.find("ncclCommDestroy", library.destroy);
  nccl.find("ncclCommAbort", library.abort);
  nccl.find("ncclGroupStart", library.group_start);
  nccl.find("ncclGroupEnd", library.group_end);
  nccl.find("ncclSend", library.send);
  nccl.find("ncclRecv", library.recv);
  nccl.find("ncclAllReduce", library.all_reduce);
  nccl.find("ncclReduceScatter", library.reduce_scatter);
  nccl.find("ncclAllGather", library.all_gather);
  nccl.find("ncclReduce", library.reduce);
  nccl.find("ncclBroadcast", library.broadcast);
  library.missing = nccl.missing();
  return library;
}

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = load_nccl("libnccl.so.2");
  return library;
}

std::string nccl_missing_in(const char* file) { return load_nccl(file).missing; }
std::string nccl_missing() { return nccl_library().missing; }

int nccl_version() {
  int version = 0;
  if (!nccl_missing().empty() || nccl_library().version(&version) != ncclSuccess) return 0;
  return version;
}

#endif

}  // namespace runtime::cuda
