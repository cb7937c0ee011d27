#include "runtime/backend/cuda_library.hpp"

#include <fmt/format.h>

#include "costmodel/base/path.hpp"
#include "runtime/backend/loaded_library.hpp"
#include "runtime/backend/transport.hpp"

namespace runtime {

namespace {

std::string found_library() {
  using namespace costmodel;
  const std::string folder = folder_of(program_file());
  for (const std::string& place : {folder, joined_path(folder, SHARDPLAN_LIBRARIES)}) {
    std::string library = joined_path(place, cuda_plugin_file);
    if (path_exists(library)) return library;
  }
  throw RunFault(0, fmt::format("the CUDA part of this program is not there: {} stands neither in "
                                "{} nor beside the installed libraries; build it where nvcc is "
                                "(cmake -DSHARDPLAN_CUDA=ON)",
                                cuda_plugin_file, folder));
}

const CudaPlugin* loaded() {
  const std::string file = found_library();
  LoadedLibrary library("the CUDA part of this program", file.c_str());
  if (!library.missing().empty()) {
    throw RunFault(0, fmt::format("{}; install CUDA's libraries, or name their folder in "
                                  "LD_LIBRARY_PATH",
                                  library.missing()));
  }
  const CudaPlugin* (*entry)(int) = nullptr;
  library.find(cuda_plugin_entry, entry);
  const CudaPlugin* const plugin = entry == nullptr ? nullptr : entry(cuda_plugin_interface);
  if (plugin == nullptr) {
    throw RunFault(
        0, fmt::format("{} is of another version than this program; build both together", file));
  }
  return plugin;
}

}  // namespace

// cuBLAS multiplies fp8 from Ada on (compute capability 8.9).
std::string fp8_missing(const std::vector<Gpu>& gpus) {
  for (const Gpu& gpu : gpus) {
    if (gpu.compute_major * 10 + gpu.compute_minor >= 89) continue;
    return fmt::format(
        "{} has no matrix products in fp8; take an H100 or newer, or set "
        "training.precision=bf16",
        gpu.name);
  }
  return "";
}

const CudaPlugin& cuda_plugin() {
  static const CudaPlugin* const plugin = loaded();
  const CudaReport report = plugin->report();
  if (!report.error.empty()) throw RunFault(0, report.error);
  if (report.gpus.empty()) throw RunFault(0, "no CUDA device is visible on this machine");
  return *plugin;
}

}  // namespace runtime
