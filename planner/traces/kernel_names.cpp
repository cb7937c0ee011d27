#include "planner/traces/kernel_names.hpp"

#include <string>

#include "costmodel/base/letter_case.hpp"

namespace planner {

using costmodel::KernelKind;

namespace {

// Words in lower case; `with`, where it is given, stands in the name too. The first row that fits
// decides: a fused kernel's name holds the names of all that it fuses.
struct Row {
  KernelKind kind;
  std::string_view word, with = {};
};

constexpr Row rows[]{
    {KernelKind::attention_backward, "flash", "bwd"},
    {KernelKind::attention_backward, "fmha", "bwd"},
    {KernelKind::attention_backward, "cudnn", "bprop"},
    {KernelKind::attention_backward, "sdpa", "bprop"},
    {KernelKind::attention_backward, "fused_attn", "bwd"},
    {KernelKind::attention_backward, "attn_bwd"},
    {KernelKind::attention_forward, "flash"},
    {KernelKind::attention_forward, "fmha"},
    {KernelKind::attention_forward, "sdpa"},
    {KernelKind::attention_forward, "fused_attn"},
    {KernelKind::attention_forward, "attn_fwd"},
    {KernelKind::products, "gemm"},
    {KernelKind::products, "nvjet"},
    {KernelKind::products, "cutlass"},
    {KernelKind::products, "cublas"},
    {KernelKind::products, "wgmma"},
    {KernelKind::products, "cijk_"},  // Tensile's, of rocBLAS and hipBLASLt
    {KernelKind::products, "_mm_"},
    {KernelKind::products, "splitk"},
    {KernelKind::products, "grouped"},
    {KernelKind::optimizer, "fusedadam"},
    {KernelKind::optimizer, "multi_tensor"},
    {KernelKind::optimizer, "foreach"},
    {KernelKind::optimizer, "lpnorm"},
    {KernelKind::loss, "softmax"},
    {KernelKind::loss, "nll_loss"},
    {KernelKind::loss, "cross_entropy"},
    {KernelKind::indexing, "embedding"},
    {KernelKind::indexing, "index"},
    {KernelKind::indexing, "sort"},
    {KernelKind::indexing, "scatter"},
    {KernelKind::indexing, "gather"},
    {KernelKind::indexing, "cumsum"},
    {KernelKind::indexing, "bincount"},
    {KernelKind::indexing, "histogram"},
    {KernelKind::indexing, "radix"},
    {KernelKind::elementwise, "triton"},
    {KernelKind::copies, "copy"},
    {KernelKind::copies, "memcpy"},
    {KernelKind::copies, "memset"},
    {KernelKind::copies, "split_with_sizes"},
    {KernelKind::copies, "chunk_cat"},
    {KernelKind::copies, "fill"},
    {KernelKind::copies, "catarray"},
    {KernelKind::elementwise, "reduce"},
    {KernelKind::elementwise, "norm"},
    {KernelKind::elementwise, "elementwise"},
    {KernelKind::elementwise, "vectorized"},
    {KernelKind::elementwise, "activation"},
    {KernelKind::elementwise, "swiglu"},
    {KernelKind::elementwise, "rope"},
    {KernelKind::copies, "cast"},
    {KernelKind::copies, "transpose"},
    {KernelKind::elementwise, "at::native"},
};

}  // namespace

bool is_collective(std::string_view kernel) {
  return kernel.starts_with("nccl") || kernel.find("ncclDevKernel") != std::string_view::npos ||
         kernel.starts_with("rccl");
}

std::optional<KernelKind> kind_of_kernel(std::string_view name) {
  if (is_collective(name)) return std::nullopt;
  const std::string text = costmodel::lower_case(std::string(name.substr(0, 4096)));
  for (const Row& row : rows) {
    if (text.find(row.word) != std::string::npos && text.find(row.with) != std::string::npos)
      return row.kind;
  }
  return std::nullopt;
}

}  // namespace planner
