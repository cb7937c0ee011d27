#include "runtime/cuda/nccl_library.hpp"

#include <dlfcn.h>

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

namespace {

template <class Function>
void find(void* handle, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr && missing.empty())
    missing = std::string("NCCL has no ") + name + ": it is older than this program";
}

}  // namespace

NcclLibrary load_nccl(const char* file) {
  NcclLibrary library;
  void* const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    library.missing =
        std::string("NCCL cannot be loaded: ") + (why == nullptr ? "for no reason given" : why);
    return library;
  }
  std::string& missing = library.missing;
  find(handle, "ncclGetVersion", library.version, missing);
  find(handle, "ncclGetErrorString", library.error_string, missing);
  find(handle, "ncclGetLastError", library.last_error, missing);
  find(handle, "ncclGetUniqueId", library.unique_id, missing);
  find(handle, "ncclCommInitRankConfig", library.init, missing);
  find(handle, "ncclCommSplit", library.split, missing);
  find(handle, "ncclCommGetAsyncError", library.async_error, missing);
  find(handle, "ncclCommFinalize", library.finalize, missing);
  find(handle, "ncclCommDestroy", library.destroy, missing);
  find(handle, "ncclCommAbort", library.abort, missing);
  find(handle, "ncclGroupStart", library.group_start, missing);
  find(handle, "ncclGroupEnd", library.group_end, missing);
  find(handle, "ncclSend", library.send, missing);
  find(handle, "ncclRecv", library.recv, missing);
  find(handle, "ncclAllReduce", library.all_reduce, missing);
  find(handle, "ncclReduceScatter", library.reduce_scatter, missing);
  find(handle, "ncclAllGather", library.all_gather, missing);
  find(handle, "ncclReduce", library.reduce, missing);
  find(handle, "ncclBroadcast", library.broadcast, missing);
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
