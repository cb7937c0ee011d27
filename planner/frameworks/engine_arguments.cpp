#include "planner/frameworks/engine_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/scenario/scenario_parts.hpp"
#include "planner/exchange/hub_names.hpp"
#include "planner/exchange/shell_script.hpp"
#include "planner/frameworks/checkpoint_format.hpp"
#include "planner/frameworks/framework_version.hpp"
#include "planner/frameworks/framework_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr double gibibyte = 1073741824.0;

struct EngineArgument {
  std::string name, value;
  std::string unknown = {};  // what of the value the script leaves open: "$TP"; else ""
};
using EngineArguments = std::vector<EngineArgument>;

std::string with_dashes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

// Short forms of vLLM's (vllm/engine/arg_utils.py), and SGLang's names of the same
// (sglang/srt/server_args.py). argparse takes a beginning that only one argument has for that one.
std::string long_name(const std::string& name, std::string_view family) {
  std::string dashed = with_dashes(name);
  const auto known = [](const std::string& word) {
    return framework_words("engines").read_as(word);
  };
  if (const std::string_view full = known(dashed); full != dashed) return std::string(full);
  const auto& flags = framework_version(std::string(family)).flags;
  const auto begin = std::ranges::lower_bound(flags, dashed);
  if (begin == flags.end() || *begin == dashed || !begin->starts_with(dashed)) return dashed;
  const auto next = begin + 1;
  if (next != flags.end() && next->starts_with(dashed)) return dashed;
  return std::string(known(*begin));
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

// The word after which an engine's arguments stand: "vllm" itself, its module or its image.
std::size_t after_engine(const ShellWords& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    const bool engine =
        word.find("vllm") != std::string::npos || word.find("sglang") != std::string::npos;
    if (!is_option(word) && engine) return i + 1;
  }
  return words.size();
}

// Those that start the engine; or, of arguments alone, those that begin with one.
std::vector<ShellWords> engine_commands(const ShellScript& script) {
  std::vector<ShellWords> all;
  for (const ShellWords& words : script.commands) {
    const std::size_t at = after_engine(words);
    if (at < words.size())
      all.emplace_back(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  }
  if (!all.empty()) return all;
  for (const ShellWords& words : script.commands)
    if (!words.empty() && is_option(words.front().text)) all.push_back(words);
  return all;
}

EngineArguments of_command(const ShellWords& words, std::string_view family) {
  EngineArguments all;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    if (word == "serve" && i + 1 < words.size() && !is_option(words[i + 1].text))
      all.push_back({"model", words[i + 1].text});
    if (!is_option(word)) continue;
    const std::size_t first = word.find_first_not_of('-');
    if (first == std::string::npos) {  // "--" ends the flags
      while (++i < words.size()) all.push_back({"", words[i].text});
      break;
    }
    const std::string name = word.substr(first);
    const std::size_t equals = name.find('=');
    if (equals != std::string::npos) {
      all.push_back(
          {long_name(name.substr(0, equals), family), name.substr(equals + 1), words[i].unknown});
    } else if (i + 1 < words.size() && !is_option(words[i + 1].text)) {
      ++i;
      all.push_back({long_name(name, family), words[i].text, words[i].unknown});
    } else {
      all.push_back({long_name(name, family), "true"});
    }
  }
  return all;
}

// What a launch of a pool has: of prompts or of decoding.
const EngineArgument* pool_mark(const EngineArguments& arguments) {
  const auto at = std::ranges::find_if(arguments, [](const EngineArgument& argument) {
    return argument.name == "kv-transfer-config" ||
           (argument.name == "disaggregation-mode" && argument.value != "null");
  });
  return at == arguments.end() ? nullptr : &*at;
}

bool is_decoding(const EngineArgument& mark) {
  return mark.value == "decode" || mark.value.find("kv_consumer") != std::string::npos;
}

const std::string& value_of(const EngineArguments& arguments, std::string_view name) {
  static const std::string none;
  const auto at = std::ranges::find(arguments, name, &EngineArgument::name);
  return at == arguments.end() ? none : at->value;
}

// A launch's commands on its further nodes.
bool joins_launch(const EngineArguments& arguments) {
  const std::string &rank = value_of(arguments, "node-rank"),
                    &first = value_of(arguments, "data-parallel-start-rank");
  return !value_of(arguments, "headless").empty() || (!rank.empty() && rank != "0") ||
         (!first.empty() && first != "0");
}

struct Launches {
  std::vector<EngineArguments> read;  // one; or that of the prompts' pool and the decoding one's
  std::vector<std::string> others;    // as written, which are not read
};

std::string as_written(const ShellWords& words) {
  std::string text;
  for (const ShellWord& word : words) text += (text.empty() ? "" : " ") + word.text;
  return text;
}

// Of several launches the first that has a model. Those of one may be spread over commands, of
// which one has it.
Launches first_launch(const std::vector<ShellWords>& commands,
                      const std::vector<EngineArguments>& arguments) {
  Launches out;
  const auto has_model = [](const EngineArguments& one) { return !value_of(one, "model").empty(); };
  const auto first = std::ranges::find_if(arguments, has_model);
  if (std::ranges::count_if(arguments, has_model) > 1) {
    out.read.push_back(*first);
    for (auto at = first + 1; at != arguments.end(); ++at) {
      if (!has_model(*at) || joins_launch(*at)) continue;
      out.others.push_back(
          as_written(commands.at(static_cast<std::size_t>(at - arguments.begin()))));
    }
    return out;
  }
  EngineArguments all;
  for (const EngineArguments& one : arguments) all.insert(all.end(), one.begin(), one.end());
  out.read.push_back(std::move(all));
  return out;
}

// One launch; or those of the prompts' pool and, after them, of the decoding one's: the first of
// each, in this order where the words name neither.
Launches of_commands(const ShellScript& script, std::string_view family) {
  const std::vector<ShellWords> commands = engine_commands(script);
  std::vector<EngineArguments> all, pools;
  for (const ShellWords& words : commands) {
    all.push_back(of_command(words, family));
    if (pool_mark(all.back()) != nullptr) pools.push_back(all.back());
  }
  const auto decoding = std::ranges::find_if(
      pools, [](const EngineArguments& pool) { return is_decoding(*pool_mark(pool)); });
  const auto prompts = std::ranges::find_if(
      pools, [](const EngineArguments& pool) { return !is_decoding(*pool_mark(pool)); });
  if (pools.size() < 2 || prompts == pools.end()) return first_launch(commands, all);
  return {{*prompts, decoding == pools.end() ? pools[1] : *decoding}, {}};
}

Launches read_launches(const std::string& text, const std::string& file, std::string_view family) {
  for (const char* sign :
       {"--", " -tp ", " -pp ", " -dp ", "vllm serve"}) {  // a command, not a map
    if (text.find(sign) != std::string::npos) return of_commands(read_shell(text, file), family);
  }
  EngineArguments all;
  for (const auto& entry : parse_yaml(text, file).entries)
    all.push_back({long_name(entry.key, family), entry.value.text});
  return {{all}, {}};
}

// The row of an argument whose value goes to a key of `serving` or `plan` as it is; null: none.
const std::vector<std::string_view>* row_of_argument(std::string_view name) {
  const auto& rows = framework_words("engines").rows;
  const auto at = std::ranges::find_if(rows, [&](const auto& row) { return row.front() == name; });
  return at == rows.end() ? nullptr : &*at;
}

std::string gib_of(const std::string& text, const std::string& file) {
  const auto n = parse_count(text);
  if (!n) {
    throw ConfigError({file, 0, 0}, fmt::format("{} is no number of GiB", quote(text)),
                      "write a number");
  }
  return fmt::format("{:.0f}", *n * gibibyte);
}

void require_count(const std::string& name, const std::string& value, const std::string& file) {
  const auto n = parse_count(value);
  constexpr double most = 1e9;
  if (n && *n >= 1 && *n <= most && *n == std::floor(*n)) return;
  throw ConfigError({file, 0, 0},
                    fmt::format("--{} is {}, no whole number from 1 on", name, quote(value)),
                    "write a number, such as 8");
}

// Of vLLM's human_readable_int (vllm/engine/arg_utils.py): 32k is 32,000 and 32K is 32,768.
std::string count_of(const std::string& name, const std::string& value, const std::string& file) {
  constexpr std::string_view small = "kmg", large = "KMG";
  const char last = value.empty() ? '\0' : value.back();
  const std::size_t decimal = small.find(last), binary = large.find(last);
  std::string written = value;
  if (decimal != std::string_view::npos || binary != std::string_view::npos) {
    const bool thousands = decimal != std::string_view::npos;
    const double power = static_cast<double>(thousands ? decimal : binary) + 1;
    const double scale = std::pow(thousands ? 1000 : 1024, power);
    if (const auto n = parse_count(value.substr(0, value.size() - 1)))
      written = fmt::format("{:.0f}", *n * scale);
  }
  require_count(name, written, file);
  return fmt::format("{:.0f}", parse_count(written).value_or(0));
}

// Of --max-model-len auto and -1 too: as long as memory allows.
std::string length_of(const std::string& value, const std::string& file) {
  return value == "auto" || value == "-1" ? "auto" : count_of("max-model-len", value, file);
}

bool take_special(const std::string& name, const std::string& value, const std::string& file,
                  Value& serving, ImportedJob& job) {
  if (name == "swap-space") {
    serving.set("swap_space_bytes", scalar_value(gib_of(value, file)));
  } else if (name == "cpu-offload-gb") {
    serving.set("cpu_offload_bytes", scalar_value(gib_of(value, file)));
  } else if (name == "dtype") {  // a quantized checkpoint keeps its own format
    if (value == "float32" || value == "float") serving.set("weights", scalar_value("fp32"));
    const bool half = value == "float16" || value == "half";
    if (half && serving.find("weights") == nullptr) serving.set("weights", scalar_value("fp16"));
  } else if (name == "kv-cache-dtype") {
    serving.set("kv_cache", scalar_value(value.starts_with("fp8") ? "fp8" : "bf16"));
  } else if (name == "max-model-len") {
    serving.set("max_model_len", scalar_value(length_of(value, file)));
  } else if (name == "enforce-eager" || name == "disable-cuda-graph") {
    serving.set("cuda_graphs", scalar_value("false"));
  } else if (name == "no-enable-chunked-prefill") {
    serving.set("chunked_prefill", scalar_value("false"));
  } else if (name == "enable-prefix-caching") {
    job.notes.emplace_back(
        "prefix caching is on: set serving.prefix_hit_share to the part of "
        "prompt tokens that it finds");
  } else {
    return name == "enable-expert-parallel" || name == "headless" ||
           name == "disable-radix-cache" || name == "nnodes" || name == "node-rank" ||
           name.starts_with("data-parallel-") || name == "distributed-executor-backend" ||
           name == "kv-transfer-config" || name.starts_with("disaggregation-");
  }
  return true;
}

std::string usual_engine(std::string_view family) {
  return family == "vllm" ? "vllm-0.9" : "sglang-0.5";
}

struct SaidEngine {
  std::string stack, version;
};

// 6 of "0.6", 1002 of "1.2.3"; -1 for what is no version.
int release_of(std::string_view version) {
  int major = 0, minor = 0;
  const char* end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return -1;
  const auto second = std::from_chars(first.ptr + 1, end, minor);
  return second.ec == std::errc() ? major * 1000 + minor : -1;
}

// Of an image (vllm/vllm-openai:v0.6.3) or a package (vllm==0.6.3).
std::string said_version(const std::string& text, std::string_view family) {
  std::size_t end = 0;  // of a name, which may hold the family several times
  for (std::size_t at = 0; (at = text.find(family, end)) != std::string::npos;) {
    end = at;
    const auto in_name = [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '/' || c == '_' || c == '-';
    };
    while (end < text.size() && in_name(static_cast<unsigned char>(text[end]))) ++end;
    const std::size_t number = text.find_first_not_of(":=v", end);
    if (number == end || number == std::string::npos || release_of(text.substr(number, 16)) < 0)
      continue;
    return text.substr(number, text.find_first_not_of("0123456789.", number) - number);
  }
  return "";
}

// The latest of our engines that is not later than the version that the text says.
std::optional<SaidEngine> said_engine(const std::string& text, std::string_view family,
                                      const std::vector<std::string>& engines) {
  const std::string version = said_version(text, family), begin = std::string(family) + "-";
  std::string best;
  int latest = -1;
  for (const std::string& name : engines) {
    if (!name.starts_with(begin)) continue;
    const int release = release_of(std::string_view(name).substr(begin.size()));
    if (release > release_of(version) || release <= latest) continue;
    latest = release;
    best = name;
  }
  if (best.empty()) return {};
  return SaidEngine{best, version};
}

void require_missing(ImportedJob& job, Value& part, const std::string& prefix,
                     const std::string& key, const std::string& remedy) {
  if (part.find(key) != nullptr) return;
  part.set(key, scalar_value(std::string(to_be_replaced)));
  job.missing.push_back({prefix + key, remedy});
}

// With data-parallel attention SGLang's tensor size and limits are of all replicas (engine_launch).
void divide_by_replicas(Value& serving, Value& plan, double replicas, double chunks,
                        const std::string& file) {
  const auto divide = [&](Value& part, const char* key, double by) {
    const Value* written = part.find(key);
    if (written == nullptr) return;
    const double all = parse_count(written->text).value_or(by);
    part.set(key, scalar_value(fmt::format("{:.0f}", std::max(1.0, std::floor(all / by)))));
  };
  const Value* tensor = plan.find("tp");
  const double ranks = tensor == nullptr ? 1 : parse_count(tensor->text).value_or(1);
  if (std::fmod(ranks, replicas) != 0) {
    throw ConfigError({file, 0, 0},
                      fmt::format("--tp-size {:.0f} is no multiple of --dp-size {:.0f}, as "
                                  "data-parallel attention needs",
                                  ranks, replicas),
                      "choose a --dp-size that divides --tp-size");
  }
  divide(plan, "tp", replicas);
  divide(serving, "max_num_seqs", replicas);
  divide(serving, "max_num_batched_tokens", chunks);
}

bool is_switch(const std::string& name) {
  return name.starts_with("enable-") || name.starts_with("no-enable-") || name == "enforce-eager" ||
         name == "disable-cuda-graph" || name == "data-parallel-attention" || name == "headless";
}

// What the arguments make together.
struct EngineWords {
  Value serving, plan;
  std::string model, checkpoint;  // ours, and as it is written
  std::string quantization;       // "" without
  bool experts = false, spread = false, known = false;
  bool exchanged = false;  // experts' tokens go by an all-to-all: a backend of SGLang's

  void take(const std::string& name, const std::string& value, const std::string& file,
            const std::vector<std::string>& models, ImportedJob& job) {
    const auto* const at = row_of_argument(name);
    if (name.empty()) return leave_out(value + ": stands after --", job);
    if (name == "max-num-batched-tokens" && value.starts_with('-'))
      return leave_out("chunked-prefill-size " + value + ": a step without a limit", job);
    const bool renamed = at != nullptr, off = is_switch(name) && value == "false";
    if (renamed) {
      Value& part = (*at)[1] == "plan" ? plan : serving;
      const bool letters = at->back() == "letters";
      if (at->size() > 3 && !letters) require_count(name, value, file);
      part.set(std::string((*at)[2]), scalar_value(letters ? count_of(name, value, file) : value));
    } else if (name == "expert-parallel-size") {
      require_count(name, value, file);
      if (value != "1") plan.set("ep", scalar_value(value));
    } else if (name == "model") {
      take_model(value, models, job);
    } else if (name == "moe-a2a-backend") {
      exchanged = value != "none";
    } else if (name == "quantization") {
      quantization = value == "null" ? "" : value == "true" ? "none" : value;
    } else if (!off && take_special(name, value, file, serving, job)) {
      experts = experts || name == "enable-expert-parallel";
      spread = spread || name == "data-parallel-attention";
    } else if (!off) {
      return leave_out(fmt::format("--{} {}", name, value), job);
    }
    known = true;
  }

  // A value that the script takes from elsewhere: a key that it decides is missing.
  void leave_open(const EngineArgument& argument, ImportedJob& job) {
    known = true;
    if (argument.name == "model") return;  // is asked for
    const auto* const at = row_of_argument(argument.name);
    const std::string remedy =
        fmt::format("--{}: the script leaves {} open", argument.name, shortened(argument.unknown));
    if (at == nullptr) return leave_out(remedy, job);
    ((*at)[1] == "plan" ? plan : serving)
        .set(std::string((*at)[2]), scalar_value(std::string(to_be_replaced)));
    job.missing.push_back({fmt::format("{}.{}", (*at)[1], (*at)[2]), remedy});
  }

 private:
  void take_model(const std::string& value, const std::vector<std::string>& models,
                  ImportedJob& job) {
    checkpoint = value;
    ImportedJob named;
    named.missing = {{"model.base", ""}};
    name_model(named, value);
    set_model_of_recipe(named, models);
    const Value* found = named.scenario.find("model");
    model = found == nullptr ? "" : found->text;
    if (model.empty() && !value.empty())
      return leave_out("model " + value + ": no model of ours", job);
    for (std::string& what : named.left_out) leave_out(std::move(what), job);
    for (std::string& note : named.notes) {
      if (std::ranges::find(job.notes, note) == job.notes.end())
        job.notes.push_back(std::move(note));
    }
  }

  // Once, though both pools have it.
  static void leave_out(std::string what, ImportedJob& job) {
    if (std::ranges::find(job.left_out, what) == job.left_out.end())
      job.left_out.push_back(std::move(what));
  }
};

bool has_experts(const std::string& model) {
  try {
    return !model.empty() && find_model(scalar_value(model), config_path({})).experts > 0;
  } catch (const ConfigError&) {
    return false;  // of a folder that is not among the usual ones
  }
}

// SGLang cuts or deals out experts over all tensor ranks where attention has replicas among these
// or tokens go by an all-to-all (server_args.py, ep_size = tp_size); dealt out is nearest here.
void spread_experts(EngineWords& words, double ranks, ImportedJob& job) {
  const Value* own = words.plan.find("ep");
  const bool needed = words.exchanged || (words.spread && own == nullptr);
  if (!needed || ranks <= 1) return;
  const std::string size = fmt::format("{:.0f}", ranks);
  if (words.model.empty()) {
    job.notes.push_back("of a model with experts: --set plan.ep=" + size);
  } else if (has_experts(words.model) && (own == nullptr || own->text != size)) {
    words.plan.set("ep", scalar_value(size));
    job.notes.push_back(fmt::format("experts are spread over all {} tensor ranks: plan.ep", size));
  }
}

// Sizes of a launch as they are in a plan, where an engine's words mean others; and its devices.
double settle_sizes(EngineWords& words, bool halves, const std::string& file, ImportedJob& job) {
  const auto size = [&](const char* key) {
    const Value* written = words.plan.find(key);
    return written == nullptr ? 1.0 : parse_count(written->text).value_or(1);
  };
  spread_experts(words, size("tp"), job);
  if (words.spread) {
    const double replicas = size("dp");
    divide_by_replicas(words.serving, words.plan, replicas, halves ? 2 : replicas, file);
  }
  if (words.experts)
    words.plan.set("ep", scalar_value(fmt::format("{:.0f}", size("tp") * size("dp"))));
  return size("tp") * size("pp") * size("dp");
}

// In what the weights are kept: by --quantization, else by the checkpoint's name; a --dtype is of
// what is not quantized.
void settle_weights(EngineWords& words, ImportedJob& job) {
  const bool asked = !words.quantization.empty();
  const auto format = asked ? format_of_quantization(words.quantization, words.checkpoint)
                            : format_in_name(words.checkpoint);
  if (!format && !asked) return;
  if (!format || format->weights.empty()) {
    const std::string what = asked ? "--quantization " + words.quantization
                                   : "checkpoint " + shortened(words.checkpoint);
    job.left_out.push_back(
        what +
        ": its width is none of ours, or is not stated: weights are taken as the model's published "
        "ones; --set serving.weights=FORMAT");
    return;
  }
  const bool typed = words.serving.find("weights") != nullptr, wide = format->weights == "bf16";
  if (typed && wide) return;
  words.serving.set("weights", scalar_value(format->weights));
  if (!asked) {
    job.notes.push_back(
        fmt::format("weights: {}, as the checkpoint's name has it", format->weights));
  }
}

// Both pools as one plan; limits and formats are the decoding one's.
Value pools_plan(EngineWords& prompts, EngineWords& decoding, const std::string& file) {
  Value pools, plan;
  for (auto& [name, words] : {std::pair{"prefill", &prompts}, {"decode", &decoding}})
    pools.set(name, words->plan.is_map() ? words->plan : parse_yaml("{tp: 1}", file));
  plan.set("disaggregation", pools);
  return plan;
}

[[noreturn]] void refuse_foreign(const std::string& file, std::string_view family) {
  const bool vllm = family == "vllm";
  throw ConfigError({file, 0, 0},
                    fmt::format("holds no engine argument of {}", vllm ? "vLLM" : "SGLang"),
                    fmt::format("give a command with --{} ..., or a map of arguments",
                                vllm ? "tensor-parallel-size" : "tp-size"));
}

std::string stack_note(const std::optional<SaidEngine>& engine, std::string_view family) {
  if (engine) return fmt::format("stack {} stands for version {}", engine->stack, engine->version);
  return fmt::format(
      "stack {} is assumed: nothing here says the version; write serving.stack (shardplan list "
      "engines) where it is another",
      usual_engine(family));
}

}  // namespace

ImportedJob import_engine(const std::string& text, const std::string& file, std::string_view family,
                          const std::vector<std::string>& models,
                          const std::vector<std::string>& engines) {
  ImportedJob job;
  std::vector<EngineWords> launches;
  const Launches written = read_launches(text, file, family);
  for (const EngineArguments& arguments : written.read) {
    EngineWords& words = launches.emplace_back();
    for (const EngineArgument& argument : arguments) {
      if (argument.unknown.empty()) {
        words.take(argument.name, argument.value, file, models, job);
      } else {
        words.leave_open(argument, job);
      }
    }
  }
  EngineWords& words = launches.back();
  Value &serving = words.serving, cluster;
  const std::string& model = words.model;
  if (!words.known) refuse_foreign(file, family);
  const auto said = said_engine(text, family, engines);
  const std::string stack = said ? said->stack : usual_engine(family);
  const bool halves = stack == "sglang-0.3" || stack == "sglang-0.4";  // engine_launch
  double devices = 0;
  for (EngineWords& one : launches) devices += settle_sizes(one, halves, file, job);
  settle_weights(words, job);
  for (const std::string& other : written.others) {
    job.left_out.push_back(shortened(other, 100) +
                           ": another launch: give it in a file of its own");
  }
  const bool pools = launches.size() > 1;
  if (pools) {
    job.notes.emplace_back(
        "prompts and decoding are launches of their own: a replica of each, or as many as its "
        "data-parallel-size; limits and formats are the decoding one's");
  }
  const Value plan = pools ? pools_plan(launches[0], launches[1], file) : words.plan;
  cluster.set("base", scalar_value(std::string(to_be_replaced)));
  const bool open = std::ranges::any_of(
      job.missing, [](const MissingKey& one) { return one.key.starts_with("plan."); });
  cluster.set("devices",
              scalar_value(open ? std::string(to_be_replaced) : fmt::format("{:.0f}", devices)));
  if (open) job.missing.push_back({"cluster.devices", "tp x pp x dp of them"});
  job.missing.push_back({"cluster.base", "--cluster NAME (see `shardplan list clusters`)"});
  Value& root = job.scenario;
  root.set("workload", scalar_value("inference"));
  if (!model.empty()) root.set("model", scalar_value(model));
  require_missing(job, root, "", "model", "see `shardplan list models`");
  root.set("cluster", cluster);
  Value engine;
  engine.set("stack", scalar_value(stack));
  for (const auto& entry : serving.entries) engine.set(entry.key, entry.value);
  require_missing(job, engine, "serving.", "input_tokens", "mean tokens of a prompt");
  require_missing(job, engine, "serving.", "output_tokens", "mean tokens of an answer");
  require_missing(job, engine, "serving.", "arrival_rate",
                  "requests a second; or concurrency: N in its place");
  root.set("serving", engine);
  root.set("plan", plan.is_map() ? plan : parse_yaml("{tp: 1}", file));
  job.notes.push_back(stack_note(said, family));
  return job;
}

}  // namespace planner
