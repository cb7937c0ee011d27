#include "planner/logs/trainer_lines.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "planner/logs/log_line.hpp"

namespace planner {

namespace {

std::optional<double> first_of(std::string_view line,
                               std::initializer_list<std::string_view> labels) {
  for (const std::string_view label : labels)
    if (const auto number = number_after(line, label)) return number;
  return {};
}

void raise_scaled(costmodel::Bytes& highest, std::optional<double> number, double unit) {
  if (number) raise_to(highest, *number * unit);
}

// The seconds of "49.79s/it", "1.25it/s", "2.50 s/step"; nullopt where the bar counts other things.
std::optional<double> seconds_of_bar(std::string_view line) {
  struct Unit {
    std::string_view text;
    bool inverse;
  };
  constexpr std::array units{Unit{"s/it", false}, Unit{"it/s", true}, Unit{"s/step", false}};
  for (const Unit& unit : units) {
    const auto end = line.find(unit.text);
    if (end == std::string_view::npos) continue;
    const auto from = line.substr(0, end).find_last_not_of("0123456789.");
    const auto number = number_after(line.substr(from + 1, end - from - 1), "");
    if (!number || *number <= 0) return {};
    return unit.inverse ? 1 / *number : *number;
  }
  return {};
}

// Bars of loading, tokenizing and evaluation have a word before them; those of training have none,
// or an epoch's.
bool is_training_bar(std::string_view before) {
  constexpr std::array words{"Epoch", "Train", "train", "Step", "step"};
  if (before.find("oading") != std::string_view::npos || before.find("valuat") != before.npos ||
      before.find("Valid") != before.npos || before.find("Map") != before.npos)
    return false;
  const bool letters =
      std::ranges::any_of(before, [](unsigned char c) { return std::isalpha(c) != 0; });
  return !letters || std::ranges::any_of(words, [&](const char* w) { return holds(before, w); });
}

// " 12/375 [09:57<5:01:12, 49.79s/it]"
bool read_bar(std::string_view line, LogDraft& draft) {
  const auto open = line.rfind('[', line.find('<'));
  if (open == std::string_view::npos || open < 4 || !holds(line, "<")) return false;
  const auto seconds = seconds_of_bar(line.substr(open));
  if (!seconds) return false;
  const std::string_view before = line.substr(0, open);
  const auto slash = before.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return false;
  const auto digits = before.substr(0, slash).find_last_not_of("0123456789");
  const auto from = digits == std::string_view::npos ? 0 : digits + 1;
  const auto number = number_after(before.substr(from, slash - from), "");
  if (!number || !is_training_bar(before.substr(0, before.find('%')))) return false;
  const bool nemo = holds(line, "global_step=") || holds(line, "v_num=");
  name_framework(draft, nemo ? "NeMo" : "Hugging Face");
  const auto step = number_after(line, "global_step=");
  draft.iterations.push_back(
      {.number = iteration_number(step ? step : number), .seconds = seconds});
  return true;
}

// "{'train_runtime': 18671.2, 'train_steps_per_second': 0.0201, ...}", "{'loss': 1.2, ...}"
bool read_dictionary(std::string_view line, LogDraft& draft) {
  const auto open = line.find('{');
  if (open == std::string_view::npos) return false;
  const auto key = [&](std::string_view name) {
    const auto plain = number_after(line, std::string("'").append(name).append("': "));
    return plain ? plain : number_after(line, std::string("'").append(name).append("': '"));
  };
  if (const auto rate = key("train_steps_per_second")) {
    name_framework(draft, "Hugging Face");
    draft.summary_steps_per_s = *rate;
    draft.summary_samples_per_s = key("train_samples_per_second").value_or(0);
    draft.summary_s = key("train_runtime").value_or(0);
    return true;
  }
  raise_scaled(draft.log.reserved, key("memory(GiB)"), gibi);
  raise_scaled(draft.log.allocated, key("memory/max_mem_active(gib)"), gibi);
  raise_scaled(draft.log.allocated, key("memory/max_active (GiB)"), gibi);
  raise_scaled(draft.log.reserved, key("memory/device_mem_reserved(gib)"), gibi);
  auto seconds = key("train_speed(s/it)");
  const auto rate = key("train_speed(iter/s)");
  if (!seconds && rate && *rate > 0) seconds = 1 / *rate;
  if (seconds) {
    name_framework(draft, "Hugging Face");
    draft.iterations.push_back(
        {.number = iteration_number(key("global_step/max_steps")), .seconds = seconds});
  }
  return seconds.has_value() || holds(line, "'loss':");
}

// What the Trainer prints before it starts.
bool read_trainer_sizes(std::string_view line, LogDraft& draft) {
  struct Size {
    std::string_view words, key;
  };
  constexpr std::array sizes{
      Size{"Instantaneous batch size per device =", "plan.micro_batch"},
      Size{"Total train batch size (w. parallel, distributed & accumulation) =",
           "training.global_batch"}};
  for (const Size& size : sizes) {
    const auto number = number_after(line, size.words);
    if (!number) continue;
    keep_number(draft, size.key, number);
    return true;
  }
  const auto trained = number_after(line, "Number of trainable parameters =");
  if (trained) draft.log.parameters = *trained;
  return trained.has_value();
}

bool read_verl(std::string_view line, LogDraft& draft) {
  if (!holds(line, "timing_s/")) return false;
  const auto seconds = first_of(line, {"timing_s/update_actor:", "timing_s/step:"});
  if (!seconds) return false;
  name_framework(draft, "verl");
  draft.iterations.push_back(
      {.number = iteration_number(number_after(line, "step:")), .seconds = seconds});
  raise_scaled(draft.log.allocated, number_after(line, "perf/max_memory_allocated_gb:"), gibi);
  raise_scaled(draft.log.reserved, number_after(line, "perf/max_memory_reserved_gb:"), gibi);
  return true;
}

bool read_olmo(std::string_view line, LogDraft& draft) {
  if (const auto step = number_after(line, "[step=")) {
    draft.record = iteration_number(step);
    return true;
  }
  const auto rate =
      first_of(line, {"throughput/device/batches_per_second=", "throughput/device/BPS="});
  if (rate && *rate > 0) {
    name_framework(draft, "OLMo");
    draft.iterations.push_back({.number = draft.record, .seconds = 1 / *rate});
    return true;
  }
  if (const auto data = number_after(line, "throughput/device/data loading (s)=")) {
    draft.parts.push_back({JobPart::data, *data, *data});
    return true;
  }
  const auto peak = number_after(line, "System/Peak GPU Memory (MB)=");
  raise_scaled(draft.log.allocated, peak, mebi);
  return peak.has_value();
}

}  // namespace

bool read_trainer_line(std::string_view line, LogDraft& draft) {
  for (const auto read : {read_bar, read_dictionary, read_trainer_sizes, read_verl, read_olmo})
    if (read(line, draft)) return true;
  return false;
}

}  // namespace planner
