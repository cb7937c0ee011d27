#include "planner/frameworks/import_slime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "planner/exchange/hub_names.hpp"
#include "planner/frameworks/framework_words.hpp"
#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/setting_fields.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Of a flag as a number; `otherwise` where it is absent or no positive number.
std::int64_t number_of(const MegatronArguments& all, std::string_view flag,
                       std::int64_t otherwise) {
  const MegatronArgument* one = all.find(flag);
  if (one == nullptr || one->values.size() != 1 || !one->unknown.empty()) return otherwise;
  const std::string& text = one->values.front();
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr std::int64_t most = 1'000'000'000;
  const bool read = fault == std::errc() && end == text.data() + text.size();
  return read && number > 0 && number < most ? number : otherwise;
}

void add(MegatronArguments& all, const char* flag, std::int64_t number) {
  if (all.find(flag) == nullptr && number > 0)
    all.list.push_back({flag, {std::to_string(number)}, {}, ""});
}

// The last script of a folder models/ that is sourced, without its ending.
std::string sourced_model(const std::string& text) {
  constexpr std::string_view folder = "models/", ending = ".sh";
  for (std::size_t at = text.rfind(folder); at != std::string::npos && at > 0;
       at = text.rfind(folder, at - 1)) {
    const std::size_t line = text.rfind('\n', at) + 1, from = at + folder.size();
    const std::size_t end = text.find(ending, from);
    const bool sources = text.compare(line, 7, "source ") == 0 || text.compare(line, 2, ". ") == 0;
    if (sources && end != std::string::npos && text.find('\n', from) > end)
      return text.substr(from, end - from);
  }
  return "";
}

// slime's words in Megatron-LM's.
void translate(MegatronArguments& all) {
  const std::int64_t tokens =
      number_of(all, "--max-tokens-per-gpu", 0) * number_of(all, "--context-parallel-size", 1);
  std::int64_t length = number_of(all, "--rollout-max-response-len", 0) +
                        number_of(all, "--rollout-max-prompt-len", 0);
  if (length == 0 && tokens > 0) {  // supervised: samples without a rollout's limit
    length = tokens;
    all.notes.push_back(
        fmt::format("a sequence is taken as the {} tokens that a replica holds", tokens));
  }
  add(all, "--seq-length", length);
  std::int64_t micro = 1;  // a power of two, which divides what is common
  while (length > 0 && 2 * micro * length <= tokens) micro *= 2;
  add(all, "--micro-batch-size", micro);
  add(all, "--global-batch-size",
      product({number_of(all, "--rollout-batch-size", 1),
               number_of(all, "--n-samples-per-prompt", 1)}));
  if (all.find("--bf16") == nullptr && all.find("--fp16") == nullptr)
    all.list.push_back({"--bf16", {}, {}, ""});
  // Its arguments.py turns the distributed optimizer on, whatever the command has.
  if (all.find("--use-distributed-optimizer") == nullptr)
    all.list.push_back({"--use-distributed-optimizer", {}, {}, ""});
  all.per_node = number_of(all, "--actor-num-gpus-per-node", 8);
  all.world_size = product({number_of(all, "--actor-num-nodes", 1), all.per_node});
  std::erase_if(all.list, [](const MegatronArgument& one) {
    return std::ranges::any_of(framework_words("slime").harmless,
                               [&](std::string_view own) { return one.flag.starts_with(own); });
  });
}

}  // namespace

bool holds_slime(const std::string& text) {
  return text.find("--actor-num-gpus-per-node") != std::string::npos &&
         text.find("--rollout-batch-size") != std::string::npos;
}

ImportedJob import_slime(const std::string& text, const std::string& file) {
  MegatronArguments all = read_megatron_script(text, file);
  const bool own_model = all.find("--num-layers") != nullptr;
  translate(all);
  ImportedJob job = import_megatron(all);
  job.format = JobFormat::slime;
  assume_sequence(job);
  job.notes.emplace_back(
      "the actor's update alone: rollout, reward and reference are left out; every sequence is as "
      "long as the longest");
  if (own_model) return job;
  std::erase_if(job.missing, [](const MissingKey& one) { return one.key.starts_with("model."); });
  job.scenario.set("model", Value{});
  std::string name = sourced_model(text);
  miss_key(job, "model", "base",
           fmt::format("{}: --set model=NAME",
                       name.empty() ? "no script of a model is sourced" : shortened(name)));
  name_model(job, std::move(name));
  return job;
}

}  // namespace planner
