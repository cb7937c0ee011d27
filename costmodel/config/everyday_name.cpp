#include "costmodel/config/everyday_name.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <set>

#include "costmodel/base/letter_case.hpp"
#include "costmodel/config/checkpoints.hpp"
#include "costmodel/config/yaml.hpp"

namespace costmodel {

namespace {

// Words of letters and digits, in lower case: "Llama-3.1 8B" as llama, 3, 1, 8b.
std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string together(const std::vector<std::string>& words) {
  std::string all;
  for (const auto& word : words) all += word;
  return all;
}

// "rtx4090" of "NVIDIA GeForce RTX 4090".
std::string device_letters(std::string_view name) {
  static const std::set<std::string> makers{"nvidia", "geforce", "tesla", "amd", "instinct"};
  auto words = words_in(name);
  std::erase_if(words, [](const std::string& word) { return makers.contains(word); });
  return together(words);
}

// The words under `names` of a file itself, not of what it is based on.
std::vector<std::string> names_of(const Value& file) {
  std::vector<std::string> all;
  const Value* names = file.find("names");
  if (names == nullptr) return all;
  for (const Value& name : names->items) all.push_back(name.text);
  return all;
}

// The file of a listed name.
const Value& file_named(const ConfigPath& path, const std::string& kind, const std::string& name) {
  return loaded(path, find_config(path, kind, name, {}));
}

// The name of a model without the owner of its repository and without what says how it was tuned
// or stored: "llama-3.1-8b" of "meta-llama/Meta-Llama-3.1-8B-Instruct".
std::vector<std::string> model_words(std::string_view name) {
  static const std::set<std::string> endings{"hf", "instruct", "chat", "base", "it", "v0", "dev"};
  const auto slash = name.rfind('/');
  auto words = words_in(slash == std::string_view::npos ? name : name.substr(slash + 1));
  if (words.size() > 1 && words.front() == "meta") words.erase(words.begin());
  const auto ends = std::find_if(words.begin() + (words.empty() ? 0 : 1), words.end(),
                                 [](const auto& word) { return endings.contains(word); });
  words.erase(ends, words.end());
  return words;
}

bool is_size(const std::string& word) {  // "7b", "8x22b", "0" and "5b" of "0.5b"
  return word.size() > 1 && std::isdigit(static_cast<unsigned char>(word.front())) != 0 &&
         (word.back() == 'b' || word.back() == 'm');
}

// Whether `asked` names a part of the model of these words. A family and a size are not a model of
// a kind that has a name in between: Qwen2.5 7B is not Qwen2.5-VL 7B.
bool is_part(const std::vector<std::string>& asked, const std::vector<std::string>& words) {
  const auto among = [](const std::string& word, const std::vector<std::string>& all) {
    return std::ranges::count(all, word) > 0;
  };
  if (!std::ranges::all_of(asked, [&](const auto& word) { return among(word, words); }))
    return false;
  if (asked.size() < 2 || std::ranges::none_of(asked, is_size)) return true;
  return std::ranges::none_of(words, [&](const std::string& word) {
    const bool kind = std::isalpha(static_cast<unsigned char>(word.front())) != 0;
    return kind && !among(word, asked);
  });
}

std::vector<std::string> those(const std::vector<std::string>& names,
                               const std::function<bool(const std::string&)>& fits) {
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found), fits);
  return found;
}

}  // namespace

std::vector<std::string> configs_called(const ConfigPath& path, const std::string& kind,
                                        std::string_view word) {
  const auto names = config_names(path, kind);
  auto exactly = those(names, [&](const std::string& name) { return name == word; });
  if (!exactly.empty()) return exactly;
  const std::string asked = device_letters(word);
  return those(names, [&](const std::string& name) {
    const auto called = names_of(file_named(path, kind, name));
    return !asked.empty() && std::ranges::any_of(called, [&](const std::string& one) {
      return device_letters(one) == asked;
    });
  });
}

std::vector<std::string> everyday_names(const ConfigPath& path, const std::string& kind) {
  std::vector<std::string> all, further;
  for (const auto& name : config_names(path, kind)) {
    const auto called = names_of(file_named(path, kind, name));
    if (called.empty()) continue;
    all.push_back(called.front());
    further.insert(further.end(), called.begin() + 1, called.end());
  }
  all.insert(all.end(), further.begin(), further.end());
  return all;
}

std::vector<std::string> models_named(const ConfigPath& path, std::string_view word) {
  const auto names = config_names(path, "models");
  if (auto found = those(names, [&](const auto& name) { return name == word; }); !found.empty())
    return found;
  const auto called = [&](std::string_view other) {
    const std::string letters = together(model_words(other));
    return those(names, [&](const std::string& name) {
      return !letters.empty() && together(model_words(name)) == letters;
    });
  };
  if (auto found = called(word); !found.empty()) return found;
  const Checkpoint* other = checkpoint_called(word.substr(word.rfind('/') + 1));
  return other == nullptr || other->towers ? std::vector<std::string>{} : called(other->sizes_of);
}

std::vector<std::string> models_called(const ConfigPath& path, std::string_view word) {
  if (auto found = models_named(path, word); !found.empty()) return found;
  const auto asked = model_words(word);
  const std::string letters = together(asked);
  const bool another = checkpoint_called(word.substr(word.rfind('/') + 1)) != nullptr;
  if (letters.empty() || another) return {};
  return those(config_names(path, "models"), [&](const std::string& name) {
    const bool begins = letters.size() >= 4 && together(words_in(name)).starts_with(letters);
    return begins || is_part(asked, words_in(name));
  });
}

}  // namespace costmodel
