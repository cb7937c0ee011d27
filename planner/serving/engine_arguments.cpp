#include "planner/serving/engine_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/yaml.hpp"
#include "planner/exchange/shell_script.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::scalar_value;
using costmodel::ServingScenario;
using costmodel::ServingSizes;
using costmodel::Value;
using costmodel::WeightFormat;

namespace {

constexpr double gibibyte = 1073741824.0;

using Arguments = std::vector<std::pair<std::string, std::string>>;

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// Short forms of vLLM's (vllm/engine/arg_utils.py).
std::string long_name(const std::string& name) {
  static constexpr std::array<std::array<std::string_view, 2>, 3> shorts{
      {{"tp", "tensor-parallel-size"},
       {"pp", "pipeline-parallel-size"},
       {"dp", "data-parallel-size"}}};
  for (const auto& [from, to] : shorts) {
    if (name == from) return std::string(to);
  }
  return with_dashes(name);
}

bool is_flag(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

Arguments of_commands(const ShellScript& script) {
  Arguments all;
  for (const ShellWords& words : script.commands) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i].text;
      if (word == "serve" && i + 1 < words.size() && !is_flag(words[i + 1].text))
        all.emplace_back("model", words[i + 1].text);
      if (!is_flag(word)) continue;
      const std::string name = word.substr(word.find_first_not_of('-'));
      const std::size_t equals = name.find('=');
      if (equals != std::string::npos) {
        all.emplace_back(long_name(name.substr(0, equals)), name.substr(equals + 1));
      } else if (i + 1 < words.size() && !is_flag(words[i + 1].text)) {
        all.emplace_back(long_name(name), words[++i].text);
      } else {
        all.emplace_back(long_name(name), "true");
      }
    }
  }
  return all;
}

Arguments read_arguments(const std::string& text, const std::string& file) {
  for (const char* sign :
       {"--", " -tp ", " -pp ", " -dp ", "vllm serve"}) {  // a command, not a map
    if (text.find(sign) != std::string::npos) return of_commands(read_shell(text, file));
  }
  Arguments all;
  for (const auto& entry : costmodel::parse_yaml(text, file).entries)
    all.emplace_back(long_name(entry.key), entry.value.text);
  return all;
}

// "meta-llama/Llama-2-7b-chat-hf": "llama-2-7b". DeepSeek-R1 has the shape of DeepSeek-V3.
std::string model_name(std::string name, const std::vector<std::string>& models) {
  name = name.substr(name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.starts_with("deepseek-r1") && name.find("distill") == std::string::npos)
    name = "deepseek-v3";
  std::string best;  // the longest of ours that it begins with or holds
  for (const std::string& model : models) {
    if (name.find(model) != std::string::npos && model.size() > best.size()) best = model;
  }
  return best;
}

std::string weights_of_words(const std::string& quantization) {
  if (quantization.find("fp8") != std::string::npos) return "fp8";
  if (quantization.find("awq") != std::string::npos ||
      quantization.find("gptq") != std::string::npos)
    return "int4";
  return quantization.find("w8a8") != std::string::npos || quantization == "compressed-tensors" ||
                 quantization == "ascend"
             ? "int8"
             : "bf16";
}

// Arguments whose value goes to a key of `serving` or `plan` as it is.
struct Renamed {
  std::string_view theirs, part, ours;
};
constexpr std::array renamed{Renamed{"tensor-parallel-size", "plan", "tp"},
                             Renamed{"pipeline-parallel-size", "plan", "pp"},
                             Renamed{"data-parallel-size", "plan", "dp"},
                             Renamed{"block-size", "serving", "block_size"},
                             Renamed{"gpu-memory-utilization", "serving", "gpu_memory_utilization"},
                             Renamed{"max-num-seqs", "serving", "max_num_seqs"},
                             Renamed{"max-num-batched-tokens", "serving", "max_num_batched_tokens"},
                             Renamed{"enable-chunked-prefill", "serving", "chunked_prefill"}};

std::string gib_of(const std::string& text, const std::string& file) {
  const auto n = costmodel::parse_count(text);
  if (!n) {
    throw ConfigError({file, 0, 0}, fmt::format("{} is no number of GiB", costmodel::quote(text)),
                      "write a number");
  }
  return fmt::format("{:.0f}", *n * gibibyte);
}

bool take_special(const std::string& name, const std::string& value, const std::string& file,
                  Value& serving, ImportedJob& job) {
  if (name == "swap-space") {
    serving.set("swap_space_bytes", scalar_value(gib_of(value, file)));
  } else if (name == "cpu-offload-gb") {
    serving.set("cpu_offload_bytes", scalar_value(gib_of(value, file)));
  } else if (name == "quantization") {
    serving.set("weights", scalar_value(weights_of_words(value)));
  } else if (name == "kv-cache-dtype") {
    serving.set("kv_cache", scalar_value(value.starts_with("fp8") ? "fp8" : "bf16"));
  } else if (name == "enable-prefix-caching") {
    job.notes.emplace_back(
        "prefix caching is on: set serving.prefix_hit_share to the part of "
        "prompt tokens that it finds");
  } else {
    return name == "dtype" || name == "enable-expert-parallel";
  }
  return true;
}

void require_missing(ImportedJob& job, Value& part, const std::string& prefix,
                     const std::string& key, const std::string& remedy) {
  if (part.find(key) != nullptr) return;
  part.set(key, scalar_value(std::string(to_be_replaced)));
  job.missing.push_back({prefix + key, remedy});
}

std::string vllm_quantization(WeightFormat format) {
  switch (format) {
    case WeightFormat::fp8: return "fp8";
    case WeightFormat::int8: return "compressed-tensors";
    case WeightFormat::int4: return "awq_marlin";
    case WeightFormat::nvfp4: return "modelopt_fp4";
    case WeightFormat::bf16:
    case WeightFormat::fp16:
    case WeightFormat::fp32: break;
  }
  return "";
}

Arguments vllm_arguments(const ServingScenario& s, const ServingSizes& sizes) {
  const auto& limits = s.serving.limits;
  Arguments all{{"tensor-parallel-size", std::to_string(sizes.tp)},
                {"pipeline-parallel-size", std::to_string(sizes.pp)}};
  if (sizes.dp > 1) all.emplace_back("data-parallel-size", std::to_string(sizes.dp));
  if (sizes.ep > 1) all.emplace_back("enable-expert-parallel", "");
  all.emplace_back("max-num-seqs", std::to_string(limits.max_num_seqs));
  all.emplace_back("max-num-batched-tokens", std::to_string(limits.max_num_batched_tokens));
  all.emplace_back(limits.chunked_prefill ? "enable-chunked-prefill" : "no-enable-chunked-prefill",
                   "");
  all.emplace_back("gpu-memory-utilization", fmt::format("{:g}", limits.gpu_memory_utilization));
  all.emplace_back("block-size", std::to_string(limits.block_size));
  if (s.serving.weights == WeightFormat::fp16) all.emplace_back("dtype", "float16");
  if (s.serving.weights == WeightFormat::fp32) all.emplace_back("dtype", "float32");
  const std::string quantization = vllm_quantization(s.serving.weights);
  if (!quantization.empty()) all.emplace_back("quantization", quantization);
  if (bytes_of(s.serving.kv_cache) < 2) all.emplace_back("kv-cache-dtype", "fp8");
  if (s.serving.prefix_hit_share > 0) all.emplace_back("enable-prefix-caching", "");
  const auto gib = [](costmodel::Bytes b) { return fmt::format("{:g}", b.value / gibibyte); };
  if (s.serving.swap_space.value > 0) all.emplace_back("swap-space", gib(s.serving.swap_space));
  if (s.serving.cpu_offload.value > 0)
    all.emplace_back("cpu-offload-gb", gib(s.serving.cpu_offload));
  return all;
}

// With data-parallel attention SGLang's tensor size counts all devices (docs, "DeepSeek usage").
Arguments sglang_arguments(const ServingScenario& s, const ServingSizes& sizes) {
  const auto& limits = s.serving.limits;
  const bool spread = sizes.spreads_experts();
  Arguments all{{"tp-size", std::to_string(spread ? sizes.tp * sizes.dp : sizes.tp)},
                {"pp-size", std::to_string(sizes.pp)}};
  if (sizes.dp > 1) all.emplace_back("dp-size", std::to_string(sizes.dp));
  if (spread) all.emplace_back("enable-dp-attention", "");
  if (sizes.ep > 1) all.emplace_back("ep-size", std::to_string(sizes.ep));
  all.emplace_back("max-running-requests", std::to_string(limits.max_num_seqs));
  all.emplace_back("chunked-prefill-size", std::to_string(limits.max_num_batched_tokens));
  if (limits.chunked_prefill) all.emplace_back("enable-mixed-chunk", "");
  all.emplace_back("mem-fraction-static", fmt::format("{:g}", limits.gpu_memory_utilization));
  all.emplace_back("page-size", std::to_string(limits.block_size));
  if (s.serving.weights == WeightFormat::fp32) all.emplace_back("dtype", "float32");
  if (s.serving.weights == WeightFormat::fp8) all.emplace_back("quantization", "fp8");
  if (s.serving.weights == WeightFormat::int8) all.emplace_back("quantization", "w8a8_int8");
  if (s.serving.weights == WeightFormat::int4) all.emplace_back("quantization", "awq_marlin");
  if (s.serving.weights == WeightFormat::nvfp4) all.emplace_back("quantization", "modelopt_fp4");
  if (bytes_of(s.serving.kv_cache) < 2) all.emplace_back("kv-cache-dtype", "fp8_e4m3");
  if (s.serving.prefix_hit_share <= 0) all.emplace_back("disable-radix-cache", "");
  return all;
}

void add_launch_notes(const ServingScenario& s, const ServingSizes& sizes, bool vllm,
                      EngineLaunch& launch) {
  if (s.serving.weights == WeightFormat::int8 || s.serving.weights == WeightFormat::int4 ||
      s.serving.weights == WeightFormat::nvfp4) {
    launch.notes.push_back(
        fmt::format("{} weights need a checkpoint of that format: name it in MODEL",
                    to_string(s.serving.weights)));
  }
  if (sizes.devices() > s.cluster.devices_per_node) {
    launch.notes.emplace_back(
        vllm ? "more than a node: start Ray on all of them, and add --distributed-executor-backend "
               "ray"
             : "more than a node: add --nnodes, --node-rank and --dist-init-addr on each");
  }
  if (!vllm && s.serving.swap_space.value + s.serving.cpu_offload.value > 0)
    launch.notes.emplace_back("SGLang has no words for swap_space and cpu_offload: left out");
}

}  // namespace

std::vector<std::vector<int>> tensor_groups(const ServingSizes& sizes) {
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(sizes.pp));
  for (int rank = 0; rank < sizes.replica(); ++rank)
    groups[static_cast<std::size_t>(rank / sizes.tp)].push_back(rank);
  return groups;
}

EngineLaunch engine_launch(const ServingScenario& s, const ServingSizes& sizes,
                           const std::string& target) {
  const bool vllm = target == "vllm";
  if (!vllm && target != "sglang") {
    throw ConfigError({},
                      target.empty() ? "shardplan: export lacks --to"
                                     : fmt::format("shardplan: cannot export serving to {}",
                                                   costmodel::quote(target)),
                      "allowed: --to vllm, sglang");
  }
  if (s.plan.disaggregation) {
    throw ConfigError(s.plan.mark, "prompts and decoding on devices of their own are two launches",
                      "export each with plan.tp, pp, ep and dp of its own");
  }
  EngineLaunch launch;
  launch.arguments = vllm ? vllm_arguments(s, sizes) : sglang_arguments(s, sizes);
  launch.text = fmt::format("#!/usr/bin/env bash\n# {} on {} devices\nset -euo pipefail\n\n",
                            costmodel::printable(s.model_text), sizes.devices());
  launch.text += "MODEL=${MODEL:?the checkpoint: a name of the Hugging Face hub, or a folder}\n\n";
  launch.text +=
      vllm ? "vllm serve \"$MODEL\"" : "python3 -m sglang.launch_server --model-path \"$MODEL\"";
  for (const auto& [name, value] : launch.arguments)
    launch.text += fmt::format(" \\\n  --{}{}{}", name, value.empty() ? "" : " ", value);
  launch.text += " \"$@\"\n";
  add_launch_notes(s, sizes, vllm, launch);
  return launch;
}

ImportedJob import_vllm(const std::string& text, const std::string& file,
                        const std::vector<std::string>& models) {
  ImportedJob job;
  Value serving, plan, cluster;
  std::string model;
  bool experts = false, known = false;
  for (const auto& argument : read_arguments(text, file)) {
    const std::string &name = argument.first, &value = argument.second;
    const auto at = std::find_if(renamed.begin(), renamed.end(),
                                 [&](const Renamed& row) { return row.theirs == name; });
    if (at != renamed.end()) {
      (at->part == "plan" ? plan : serving).set(std::string(at->ours), scalar_value(value));
      known = true;
    } else if (name == "model") {
      model = model_name(value, models);
      if (model.empty()) job.left_out.push_back("model " + value + ": no model of ours");
      known = true;
    } else if (take_special(name, value, file, serving, job)) {
      experts = experts || name == "enable-expert-parallel";
      known = true;
    } else {
      job.left_out.push_back(fmt::format("--{} {}", name, value));
    }
  }
  if (!known) {
    throw ConfigError({file, 0, 0}, "holds no engine argument of vLLM",
                      "give a command with --tensor-parallel-size ..., or a map of arguments");
  }
  const auto size = [&](const char* key) {
    const Value* written = plan.find(key);
    return written == nullptr ? 1.0 : costmodel::parse_count(written->text).value_or(1);
  };
  const double devices = size("tp") * size("pp") * size("dp");
  if (experts) plan.set("ep", scalar_value(fmt::format("{:.0f}", size("tp") * size("dp"))));
  cluster.set("base", scalar_value(std::string(to_be_replaced)));
  cluster.set("devices", scalar_value(fmt::format("{:.0f}", devices)));
  job.missing.push_back({"cluster.base", "--cluster NAME (see `shardplan list clusters`)"});
  Value& root = job.scenario;
  root.set("workload", scalar_value("inference"));
  if (!model.empty()) root.set("model", scalar_value(model));
  require_missing(job, root, "", "model", "see `shardplan list models`");
  root.set("cluster", cluster);
  Value engine;
  engine.set("stack", scalar_value("vllm-0.9"));
  for (const auto& entry : serving.entries) engine.set(entry.key, entry.value);
  require_missing(job, engine, "serving.", "input_tokens", "mean tokens of a prompt");
  require_missing(job, engine, "serving.", "output_tokens", "mean tokens of an answer");
  require_missing(job, engine, "serving.", "arrival_rate",
                  "requests a second; or concurrency: N in its place");
  root.set("serving", engine);
  root.set("plan", plan.is_map() ? plan : costmodel::parse_yaml("{tp: 1}", file));
  job.notes.emplace_back("stack vllm-0.9 is assumed: the arguments do not say the version");
  return job;
}

}  // namespace planner
