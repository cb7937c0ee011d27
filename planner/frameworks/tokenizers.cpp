#include "planner/frameworks/tokenizers.hpp"

#include <cctype>
#include <cstdlib>
#include <string>

#include "planner/frameworks/framework_words.hpp"

namespace planner {

std::optional<std::int64_t> vocabulary_of(std::string_view tokenizer) {
  std::string name;
  for (const char c : tokenizer)
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::pair<std::string_view, std::string_view>* best = nullptr;
  for (const auto& one : framework_words("tokenizers").words) {
    const bool longer = best == nullptr || one.first.size() > best->first.size();
    if (longer && name.find(one.first) != std::string::npos) best = &one;
  }
  if (best == nullptr) return std::nullopt;
  return std::strtoll(std::string(best->second).c_str(), nullptr, 10);
}

}  // namespace planner
