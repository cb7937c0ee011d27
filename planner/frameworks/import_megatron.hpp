// A run of Megatron-LM as a scenario: model, training and plan from its arguments (core 0.20; the
// defaults of megatron/training/arguments.py and core/transformer/transformer_config.py where an
// argument is not given).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/plan/stack_spec.hpp"
#include "planner/exchange/imported_job.hpp"
#include "planner/frameworks/megatron_arguments.hpp"
#include "planner/frameworks/megatron_words.hpp"

namespace planner {

// Which devices they are, no argument says: cluster.base is missing. Throws costmodel::ConfigError
// at the place of a value that is not one, and of a choice that no key says (layers with experts in
// no regular order).
ImportedJob import_megatron(const MegatronArguments& arguments);

// What the import of Megatron-LM's arguments works with: arguments looked up by their flag, the
// scenario grown key by key, and a list of what nobody has looked up.
class MegatronImport {
 public:
  explicit MegatronImport(const MegatronArguments& arguments);

  // Arguments; each is then no longer among the others. The readers throw costmodel::ConfigError at
  // the argument for a value that is missing, of another type, or not said by the script.
  const MegatronArgument* find(std::string_view flag);
  bool has(std::string_view flag);                          // of a switch: it takes no value
  bool any(std::initializer_list<std::string_view> flags);  // looks up all of them
  std::string text(std::string_view flag, std::string_view otherwise = "");
  std::int64_t whole(std::string_view flag, std::int64_t otherwise);
  std::optional<double> number(std::string_view flag);
  // Megatron-DeepSpeed's dense models have --num-experts 1.
  bool sparse() {
    const std::int64_t experts = whole("--num-experts", 0);
    return experts > 1 || (experts == 1 && has("--moe-router-topk"));
  }
  // A recipe that brings its model has only the spread of experts among its arguments.
  bool has_experts() {
    return sparse() ||
           (!has("--num-layers") && number("--expert-model-parallel-size").value_or(1) > 1);
  }
  [[noreturn]] void refuse(std::string_view flag, const std::string& why) const;
  const MegatronArguments& arguments() const { return arguments_; }
  const costmodel::StackKernels& kernels() const { return kernels_; }  // of the stack itself

  // Keys of the scenario, dotted.
  void put(std::string_view key, const std::string& text, const costmodel::Mark& mark = {});
  void put_list(std::string_view key, const std::vector<std::string>& items);
  // The rows of the table of words that stand below `part`, as they were given.
  void copy_all(std::string_view part, WordOf of);
  void miss(std::string_view key, std::string remedy);
  void note(std::string text) { job.notes.push_back(std::move(text)); }
  void leave_out(std::string_view flag, const std::string& why);

  // Lists whatever was never looked up, but for what changes nothing.
  void list_others();

  ImportedJob job;

 private:
  void copy(const MegatronWord& word);
  void put(std::string_view key, costmodel::Value value);

  const MegatronArguments& arguments_;
  costmodel::StackKernels kernels_;
  std::set<std::string, std::less<>> used_;
  std::set<std::string, std::less<>> valued_;  // of those the ones that may have a value
};

}  // namespace planner
