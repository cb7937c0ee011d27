#include "planner/traces/kernel_names.hpp"

#include <doctest/doctest.h>

namespace kernel_names_test {

using costmodel::KernelKind;
using planner::is_collective;
using planner::kind_of_kernel;

TEST_CASE("kernels of libraries and compilers are of the kinds that profiles sum up") {
  CHECK(kind_of_kernel("nvjet_tst_256x128_64x4_2x1_v_bz_coopA_NNT") == KernelKind::products);
  CHECK(kind_of_kernel("void cutlass::Kernel2<cutlass_80_tensorop_bf16>") == KernelKind::products);
  CHECK(kind_of_kernel("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<x>") ==
        KernelKind::attention_backward);
  CHECK(kind_of_kernel("void pytorch_flash::flash_fwd_kernel<x>") == KernelKind::attention_forward);
  CHECK(kind_of_kernel("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma") ==
        KernelKind::attention_backward);
  CHECK(kind_of_kernel(
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdam>") ==
        KernelKind::optimizer);
  CHECK(kind_of_kernel("triton_red_fused__log_softmax_0") == KernelKind::loss);
  CHECK(kind_of_kernel("triton_poi_fused_mul_silu_7") == KernelKind::elementwise);
  CHECK(kind_of_kernel("Memcpy DtoD (Device -> Device)") == KernelKind::copies);
  CHECK(kind_of_kernel("void at::native::indexFuncLargeIndex<float>") == KernelKind::indexing);
}

TEST_CASE("collectives and strangers have no kind") {
  CHECK(is_collective("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"));
  CHECK(!kind_of_kernel("ncclDevKernel_AllGather_RING_LL"));
  CHECK(!kind_of_kernel("my_kernel"));
  CHECK(!kind_of_kernel(""));
}

}  // namespace kernel_names_test
