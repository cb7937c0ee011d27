#include "costmodel/config/checkpoints.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace costmodel {

namespace {

// By the config.json of both on Hugging Face, or by the card of the one that was trained from the
// other. The longest length may differ.
constexpr auto checkpoints = std::to_array<Checkpoint>({
    {"Qwen2.5-0.5B", "Qwen2-0.5B"},
    {"Qwen2.5-1.5B", "Qwen2-1.5B"},
    {"Qwen2.5-7B", "Qwen2-7B"},
    {"Qwen2.5-Math-7B", "Qwen2-7B"},
    {"Qwen2.5-Math-1.5B", "Qwen2-1.5B"},
    {"Qwen2.5-Math-72B", "Qwen2.5-72B"},
    {"Qwen2.5-Coder-0.5B", "Qwen2-0.5B"},
    {"Qwen2.5-Coder-1.5B", "Qwen2-1.5B"},
    {"Qwen2.5-Coder-3B", "Qwen2.5-3B"},
    {"Qwen2.5-Coder-7B", "Qwen2-7B"},
    {"Qwen2.5-Coder-14B", "Qwen2.5-14B"},
    {"Qwen2.5-Coder-32B", "Qwen2.5-32B"},
    {"QwQ-32B", "Qwen2.5-32B"},
    {"Qwen-7B", "Qwen1.5-7B"},
    {"Qwen3.6-27B", "Qwen3.5-27B"},
    {"Qwen3.6-35B-A3B", "Qwen3.5-35B-A3B"},
    {"Qwen3.8-27B", "Qwen3.5-27B"},
    {"AI21-Jamba-1.5-Large", "Jamba-1.5-Large"},
    {"AI21-Jamba-Large-1.5", "Jamba-1.5-Large"},
    {"Mistral-Nemo-Base", "Mistral-NeMo-12B"},
    {"Mistral-Nemo-Instruct", "Mistral-NeMo-12B"},
    {"RedPajama-INCITE-Base-3B", "RedPajama-INCITE-3B"},
    {"RedPajama-INCITE-Chat-3B", "RedPajama-INCITE-3B"},
    {"RedPajama-INCITE-Instruct-3B", "RedPajama-INCITE-3B"},
    {"Qwen3-Coder-30B-A3B", "Qwen3-30B-A3B"},
    {"Qwen3-Reranker-0.6B", "Qwen3-0.6B"},
    {"Qwen3-Reranker-4B", "Qwen3-4B"},
    {"Qwen3-Reranker-8B", "Qwen3-8B"},
    {"Qwen3-VL-Reranker", "Qwen3-VL"},
    {"Qwen3-VL-Embedding", "Qwen3-VL"},
    {"Plano-Orchestrator-4B", "Qwen3-4B"},
    {"llama4-17bx16e", "Llama-4-Scout"},  // as torchtitan calls them
    {"llama4-17bx128e", "Llama-4-Maverick"},
    {"Qwen3-Embedding-0.6B", "Qwen3-0.6B"},
    {"Qwen3-Embedding-4B", "Qwen3-4B"},
    {"Qwen3-Embedding-8B", "Qwen3-8B"},
    {"DeepSeek-R1-Distill-Qwen-1.5B", "Qwen2-1.5B"},
    {"DeepSeek-R1-Distill-Qwen-7B", "Qwen2-7B"},
    {"DeepSeek-R1-Distill-Qwen-14B", "Qwen2.5-14B"},
    {"DeepSeek-R1-Distill-Qwen-32B", "Qwen2.5-32B"},
    {"DeepSeek-R1-Distill-Llama-8B", "Llama-3.1-8B"},
    {"DeepSeek-R1-Distill-Llama-70B", "Llama-3.3-70B"},
    {"DeepSeek-R1-0528-Qwen3-8B", "Qwen3-8B"},
    {"DeepSeek-R1-Distill", ""},
    {"DeepSeek-R1", "DeepSeek-V3"},
    {"DeepSeek-V3.1", "DeepSeek-V3"},
    {"DeepSeek-V2.5", "DeepSeek-V2"},
    {"DeepSeek-V2-Chat", "DeepSeek-V2"},
    {"DeepSeek-Coder-V2-Lite", "DeepSeek-V2-Lite"},
    {"DeepSeek-Coder-V2", "DeepSeek-V2"},
    {"DeepCoder-14B", "Qwen2.5-14B"},
    {"cogito-v1-preview-llama-3B", "Llama-3.2-3B"},
    {"cogito-v1-preview-llama-8B", "Llama-3.1-8B"},
    {"cogito-v1-preview-llama-70B", "Llama-3.3-70B"},
    {"cogito-v1-preview-qwen-14B", "Qwen2.5-14B"},
    {"cogito-v1-preview-qwen-32B", "Qwen2.5-32B"},
    {"gpt-oss-safeguard-20b", "gpt-oss-20b"},
    {"gpt-oss-safeguard-120b", "gpt-oss-120b"},
    {"Phi-3.5-mini", "Phi-3-mini"},
    {"Phi-4-multimodal", ""},
    {"Phi-4-mini-flash", ""},
    {"GLM-4.6V-Flash", "GLM-4.1V-9B"},
    {"GLM-Z1-9B-0414", "GLM-4-9B-0414"},
    {"GLM-Z1-32B-0414", "GLM-4-32B-0414"},
    {"glm4-9B", "GLM-4-9B-0414"},  // as slime calls them
    {"glm4-32B", "GLM-4-32B-0414"},
    {"glm4.7-30B-A3B", "GLM-4.7-Flash"},
    {"moonlight", "Moonlight-16B-A3B"},
    {"TinyLlama_v1.1", "TinyLlama-1.1B"},
    {"codegemma-2b", "gemma-2b"},
    {"codegemma-7b", "gemma-7b"},
    {"gemma-1.1-2b", "gemma-2b"},
    {"gemma-1.1-7b", "gemma-7b"},
    {"Mistral-Small-3.2-24B", "Mistral-Small-3.1-24B"},
    {"Magistral-Small-2509", "Mistral-Small-3.1-24B"},
    {"Magistral-Small-2506", "Mistral-Small-24B"},
    {"Magistral-Small-2507", "Mistral-Small-24B"},
    {"Devstral-Small-2505", "Mistral-Small-24B"},
    {"Devstral-Small-2507", "Mistral-Small-24B"},
    {"OLMo-2-1124-7B", "OLMo-2-7B"},
    {"OLMo-2-1124-13B", "OLMo-2-13B"},
    {"OLMo-3-1025-7B", "OLMo-3-7B"},
    {"MiniMax-M2.1", "MiniMax-M2"},
    {"MiniMax-M2.5", "MiniMax-M2"},
    {"vicuna-7b-v1.5", "Llama-2-7b"},
    {"vicuna-13b-v1.5", "Llama-2-13b"},
    // Models with images or sound: of these the language model alone is known here.
    {"Qwen2.5-Omni-3B", "Qwen2.5-3B", true},
    {"Qwen2.5-Omni-7B", "Qwen2-7B", true},
    {"Qwen3-Omni-30B-A3B", "Qwen3-30B-A3B", true},
    {"Qwen2-Audio-7B", "Qwen1.5-7B", true},
    {"InternVL3-2B", "Qwen2-1.5B", true},
    {"InternVL3-8B", "Qwen2-7B", true},
    {"InternVL3_5-30B-A3B", "Qwen3-30B-A3B", true},
    {"InternVL3_5-GPT-OSS-20B", "gpt-oss-20b", true},
    {"Ovis2.5-2B", "Qwen3-1.7B", true},
    {"Ovis2.5-9B", "Qwen3-8B", true},
    {"Keye-VL-1_5-8B", "Qwen3-8B", true},
    {"Keye-VL-8B", "Qwen3-8B", true},
    {"MiniCPM-V-2_6", "Qwen2-7B", true},
    {"MiniCPM-o-2_6", "Qwen2-7B", true},
    {"MiniCPM-V-4_5", "Qwen3-8B", true},
    {"Kimi-VL-A3B", "Moonlight-16B-A3B", true},
    {"GLM-4.5V", "GLM-4.5-Air", true},
    {"GLM-4.6V", "GLM-4.5-Air", true},
    {"jina-reranker-m0", "Qwen2-VL-2B", true},
    {"SmolVLM2-2.2B", "SmolLM2-1.7B", true},
});

}  // namespace

const Checkpoint* checkpoint_called(std::string_view name) {
  const auto small = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  const auto begins = [&](const Checkpoint& other) {
    const std::string_view same = other.name;
    if (!std::ranges::equal(name.substr(0, same.size()), same, {}, small, small)) return false;
    return name.size() == same.size() ||
           std::isdigit(static_cast<unsigned char>(name[same.size()])) == 0;
  };
  const auto* const at = std::ranges::find_if(checkpoints, begins);
  return at == checkpoints.end() ? nullptr : &*at;
}

}  // namespace costmodel
