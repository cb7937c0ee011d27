#include "planner/frameworks/tokenizers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace planner {

namespace {

struct Vocabulary {
  std::string_view name;  // in small letters, without blanks
  std::int64_t rows;
};

// vocab_size of each family's config.json on Hugging Face; of Megatron-LM's own tokenizers the size
// of the published vocabulary file (GPT-2's merges, BERT's word pieces).
constexpr std::array<Vocabulary, 63> vocabularies{{{"gpt2", 50'257},
                                                   {"gpt-2", 50'257},
                                                   {"bertwordpiecelowercase", 30'522},
                                                   {"bertwordpiececase", 28'996},
                                                   {"bert-large-cased", 28'996},
                                                   {"bert-large-uncased", 30'522},
                                                   {"gpt-neox", 50'432},
                                                   {"pythia", 50'432},
                                                   {"llama2tokenizer", 32'000},
                                                   {"tiktokenizer", 131'072},
                                                   {"llama-2", 32'000},
                                                   {"llama2", 32'000},
                                                   {"llava-1.5", 32'064},
                                                   {"llama-3", 128'256},
                                                   {"llama3", 128'256},
                                                   {"llama-4", 202'048},
                                                   {"llama4", 202'048},
                                                   {"mistral-7b-v0.1", 32'000},
                                                   {"mistral-7b-instruct-v0.1", 32'000},
                                                   {"mistral-7b-instruct-v0.2", 32'000},
                                                   {"mistral-7b", 32'768},
                                                   {"mistral-nemo", 131'072},
                                                   {"mistral-small", 131'072},
                                                   {"mixtral-8x7b", 32'000},
                                                   {"mixtral-8x22b", 32'768},
                                                   {"mixtral", 32'000},
                                                   {"yi-34b", 64'000},
                                                   {"qwen2-72b", 152'064},
                                                   {"qwen2-7b", 152'064},
                                                   {"qwen2.5-7b", 152'064},
                                                   {"qwen2.5-14b", 152'064},
                                                   {"qwen2.5-32b", 152'064},
                                                   {"qwen2.5-72b", 152'064},
                                                   {"qwen2", 151'936},
                                                   {"qwen3", 151'936},
                                                   {"deepseek-v2", 102'400},
                                                   {"deepseek-v3", 129'280},
                                                   {"deepseek-r1", 129'280},
                                                   {"deepseek-r1-distill-qwen", 152'064},
                                                   {"deepseek-r1-distill-llama", 128'256},
                                                   {"gpt-oss", 201'088},
                                                   {"kimi-k2", 163'840},
                                                   {"gemma-2", 256'000},
                                                   {"gemma-3", 262'144},
                                                   {"phi-3", 32'064},
                                                   {"llama-3.1-nemotron", 128'256},
                                                   {"nemotron-mini", 256'000},
                                                   {"nemotron-4", 256'000},
                                                   {"nemotron", 131'072},
                                                   {"bigscience/tokenizer", 250'880},
                                                   {"bloom", 250'880},
                                                   {"codellama", 32'016},
                                                   {"tinyllama", 32'000},
                                                   {"falcon", 65'024},
                                                   {"phi-2", 51'200},
                                                   {"starcoder2", 49'152},
                                                   {"smollm2", 49'152},
                                                   {"glm-4", 151'552},
                                                   {"internlm2", 92'544},
                                                   {"deepseek-llm", 102'400},
                                                   {"olmo-2", 100'352},
                                                   {"gemma-2b", 256'000},
                                                   {"gemma-7b", 256'000}}};

}  // namespace

std::optional<std::int64_t> vocabulary_of(std::string_view tokenizer) {
  std::string name;
  for (const char c : tokenizer)
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const Vocabulary* best = nullptr;
  for (const Vocabulary& one : vocabularies) {
    const bool longer = best == nullptr || one.name.size() > best->name.size();
    if (longer && name.find(one.name) != std::string::npos) best = &one;
  }
  return best == nullptr ? std::nullopt : std::optional(best->rows);
}

}  // namespace planner
