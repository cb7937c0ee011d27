#include "planner/frameworks/import_megatron.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/plan/stack_reader.hpp"
#include "planner/frameworks/megatron_deepspeed.hpp"
#include "planner/frameworks/megatron_model.hpp"
#include "planner/frameworks/megatron_plan.hpp"
#include "planner/frameworks/megatron_training.hpp"

namespace planner {

namespace {

void read_cluster(MegatronImport& in) {
  in.miss("cluster.base",
          "which devices they are, no argument says: add --cluster NAME (see `shardplan list "
          "clusters`)");
  const MegatronArguments& all = in.arguments();
  in.job.nodes = all.nodes;
  if (!all.from_log) in.job.started = all.world_size;
  if (all.world_size > 0) {
    in.put("cluster.devices", std::to_string(all.world_size));
  } else {
    in.miss("cluster.devices",
            "the number of devices, which neither the launcher nor the script says");
  }
}

}  // namespace

ImportedJob import_megatron(const MegatronArguments& written) {
  const MegatronArguments arguments = in_megatron_words(written);
  MegatronImport in(arguments);
  in.job.notes = arguments.notes;
  for (const char* part : {"model", "cluster", "training", "plan"}) in.job.scenario.set(part, {});
  read_megatron_model(in);
  read_cluster(in);
  read_megatron_training(in, read_megatron_plan(in));
  in.list_others();
  return std::move(in.job);
}

using namespace costmodel;

namespace {

bool is_zero(const std::string& text) { return text == "0" || text == "0.0"; }

std::string written(const MegatronArgument& a) {
  std::string text = a.flag;
  for (const auto& value : a.values) text += " " + value;
  return shortened(text, 100);
}

std::string unsaid(const MegatronArgument& a) {
  return fmt::format("{}: the script does not say {}", a.flag, shortened(a.unknown));
}

void require_known(const MegatronArgument& a) {
  if (!a.unknown.empty()) throw ConfigError(a.mark, unsaid(a), "write its value into the script");
}

// Logs print the sizes of experts and of latent attention for models without them.
bool is_of_others(std::string_view flag) {
  return std::ranges::any_of(megatron_words(), [&](const MegatronWord& word) {
    return word.flag == flag && word.of != WordOf::any_job;
  });
}

// Keys of the table that several flags, or their defaults, decide.
bool is_decided_elsewhere(std::string_view key) {
  static const std::set<std::string_view> keys{"plan.vpp",
                                               "plan.cp_comm",
                                               "plan.etp",
                                               "plan.stage_layers",
                                               "plan.micro_batch_group",
                                               "model.ffn_hidden",
                                               "model.qkv_bias",
                                               "model.kv_heads",
                                               "model.max_positions",
                                               "model.rope_scaling_factor",
                                               "training.global_batch"};
  return keys.contains(key);
}

}  // namespace

MegatronImport::MegatronImport(const MegatronArguments& arguments)
    : arguments_(arguments),
      kernels_(
          read_stack(resolve_config(config_path({}), "stacks", scalar_value(arguments.stack)).value,
                     arguments.stack)
              .kernels) {
  job.format = JobFormat::megatron;
}

const MegatronArgument* MegatronImport::find(std::string_view flag) {
  valued_.insert(std::string(flag));
  return has(flag) ? arguments_.find(flag) : nullptr;
}

bool MegatronImport::has(std::string_view flag) {
  used_.insert(std::string(flag));
  return arguments_.find(flag) != nullptr;
}

bool MegatronImport::any(std::initializer_list<std::string_view> flags) {
  bool found = false;
  for (const auto flag : flags) found = has(flag) || found;
  return found;
}

std::string MegatronImport::text(std::string_view flag, std::string_view otherwise) {
  const MegatronArgument* a = find(flag);
  if (a == nullptr) return std::string(otherwise);
  require_known(*a);
  if (a->values.empty())
    throw ConfigError(a->mark, fmt::format("{} has no value", a->flag), "write one behind it");
  return a->values.front();
}

std::int64_t MegatronImport::whole(std::string_view flag, std::int64_t otherwise) {
  const auto value = number(flag);
  if (!value) return otherwise;
  if (*value != std::floor(*value) || std::abs(*value) > 1e15) refuse(flag, "is no whole number");
  if (*value < 0) refuse(flag, "is below 0");
  return static_cast<std::int64_t>(*value);
}

std::optional<double> MegatronImport::number(std::string_view flag) {
  if (!has(flag)) return {};
  const std::string word = text(flag);
  double value = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size() || !std::isfinite(value))
    refuse(flag, "is no number");
  return value;
}

void MegatronImport::refuse(std::string_view flag, const std::string& why) const {
  const MegatronArgument* a = arguments_.find(flag);
  throw ConfigError(
      a->mark,
      fmt::format("{} {} {}", flag, quote(fmt::format("{}", fmt::join(a->values, " "))), why),
      "see Megatron-LM's --help");
}

// The flag of a key of the table, as it stands.
void MegatronImport::copy(const MegatronWord& word) {
  if (!has(word.flag)) return;
  if (word.is_switch) return put(word.key, "true", arguments_.find(word.flag)->mark);
  const MegatronArgument* a = find(word.flag);
  if (!a->unknown.empty()) return miss(word.key, unsaid(*a));
  put(word.key, text(word.flag), a->mark);
}

void MegatronImport::copy_all(std::string_view part, WordOf of) {
  for (const auto& word : megatron_words()) {
    if (word.of == of && word.key.starts_with(part) && !is_decided_elsewhere(word.key)) copy(word);
  }
}

void MegatronImport::put(std::string_view key, const std::string& text, const Mark& mark) {
  put(key, scalar_value(text, mark));
}

void MegatronImport::put(std::string_view key, Value value) {
  Value* map = &job.scenario;
  std::size_t dot = key.find('.');
  for (; dot != std::string_view::npos; dot = key.find('.')) {
    const std::string part(key.substr(0, dot));
    if (map->find(part) == nullptr) map->set(part, {});
    map = map->find(part);
    key.remove_prefix(dot + 1);
  }
  map->set(std::string(key), std::move(value));
}

void MegatronImport::put_list(std::string_view key, const std::vector<std::string>& items) {
  Value list;
  list.kind = Value::Kind::sequence;
  for (const auto& item : items) list.items.push_back(scalar_value(item));
  put(key, std::move(list));
}

void MegatronImport::miss(std::string_view key, std::string remedy) {
  put(key, std::string(to_be_replaced));
  job.missing.push_back({std::string(key), std::move(remedy)});
}

void MegatronImport::leave_out(std::string_view flag, const std::string& why) {
  const MegatronArgument* a = find(flag);
  if (a == nullptr) return;
  job.left_out.push_back(fmt::format("{}: {}", written(*a), why));
}

// Whatever was never looked up, but what changes nothing.
void MegatronImport::list_others() {
  job.asked.assign(used_.begin(), used_.end());
  std::size_t derived = 0;
  std::set<std::string> seen;
  for (const auto& a : arguments_.list) {
    const bool open = a.unknown == a.flag || (a.values.size() == 1 && a.values.front().empty() &&
                                              used_.contains(a.flag) && !valued_.contains(a.flag));
    if (open && !a.unknown.empty()) {
      job.left_out.push_back(shortened(a.unknown) + ": has no value in the script");
      continue;
    }
    const bool harmless = is_harmless_to_megatron(a.flag) || is_harmless_to_forks(a.flag);
    if (used_.contains(a.flag) || harmless || !seen.insert(a.flag).second) continue;
    const MegatronArgument& last = *arguments_.find(a.flag);
    if (is_megatron_flag(a.flag)) {
      const bool off =
          arguments_.from_log &&
          (is_of_others(a.flag) || (last.values.size() == 1 && is_zero(last.values[0])));
      if (!off) job.left_out.push_back(written(last) + ": no key says it");
    } else if (arguments_.from_log) {
      ++derived;
    } else {
      job.left_out.push_back(written(last) + ": no argument of Megatron-LM core 0.20");
    }
  }
  if (derived > 0)
    note(fmt::format("{} names of the log's table are no flags, but follow from them", derived));
}

}  // namespace planner
