// What of a model is trained: all of it, or low-rank adapters beside a frozen base (LoRA, Hu et al.
// 2021, arXiv:2106.09685; with a quantised base QLoRA, Dettmers et al. 2023, arXiv:2305.14314).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace costmodel {

// pretraining: a scenario that says nothing. full: all weights (SFT), which costs the same.
enum class FineTuningMethod { pretraining, full, lora, qlora };
inline constexpr std::array<std::string_view, 4> fine_tuning_names{"pretraining", "full", "lora",
                                                                   "qlora"};

// In which a frozen base is stored. bf16: in the 16 bits of training.precision.
enum class BasePrecision { bf16, fp8, nf4 };
inline constexpr std::array<std::string_view, 3> base_precision_names{"bf16", "fp8", "nf4"};

// The projections that may have an adapter, as bits in the order of these names.
enum class AdapterTarget { q, k, v, o, gate, up, down };
inline constexpr std::array<std::string_view, 7> adapter_target_names{"q",    "k",  "v",   "o",
                                                                      "gate", "up", "down"};
constexpr unsigned bit_of(AdapterTarget target) { return 1U << static_cast<unsigned>(target); }
inline constexpr unsigned attention_targets = 0b0001111;
// The projections that are one product to Megatron-LM: linear_qkv, linear_fc1.
inline constexpr std::array<unsigned, 2> joint_targets{0b0000111, 0b0110000};

// Parts of a model that training.frozen leaves as they are, as bits in the order of these names:
// layers and stem of a tower, and the projectors of all.
enum class ModelPiece { vision, audio, projector };
inline constexpr std::array<std::string_view, 3> model_piece_names{"vision", "audio", "projector"};
constexpr unsigned bit_of(ModelPiece piece) { return 1U << static_cast<unsigned>(piece); }

struct FineTuning {
  FineTuningMethod method = FineTuningMethod::pretraining;
  std::int64_t rank = 16;
  double alpha = 32;           // the adapters' result is scaled by alpha / rank
  double dropout = 0;          // of what adapters read
  unsigned targets = 0;        // bits of AdapterTarget
  bool joint = false;          // one adapter for projections that are one product
  bool all_to_all = false;     // sequence parallelism: each rank is sent its tokens' results alone
  bool fp32_adapters = false;  // trained as they are, without another copy in the optimizer
  BasePrecision base = BasePrecision::bf16;
  bool double_quantization = true;  // of nf4: the scales are quantised too
  bool quantised_experts = true;    // experts' weights are kept in `base` too, not as trained ones

  unsigned frozen = 0;  // bits of ModelPiece

  // Beside adapters nothing else is trained.
  bool trains(ModelPiece piece) const { return !adapts() && (frozen & bit_of(piece)) == 0; }
  bool adapts() const { return method >= FineTuningMethod::lora; }
  bool has(AdapterTarget target) const { return (targets & bit_of(target)) != 0; }

  // Bytes of a frozen matrix's value, scales included; `element` are those of training.precision.
  // fp8 has a scale a matrix, which is not counted. nf4 has an absolute maximum for 64 values: in
  // fp32, or in 8 bits with one fp32 scale for 256 of them, 0.127 bits a value
  // (arXiv:2305.14314, section 3, double quantization).
  double base_bytes(double element) const {
    constexpr double block = 64, scales = 256;
    switch (base) {
      case BasePrecision::bf16: return element;
      case BasePrecision::fp8: return 1;
      case BasePrecision::nf4:
        return (4 + (double_quantization ? 8 / block + 32 / (block * scales) : 32 / block)) / 8;
    }
    return element;
  }
};

}  // namespace costmodel
