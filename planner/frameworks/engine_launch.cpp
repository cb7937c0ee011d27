#include "planner/frameworks/engine_launch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/frameworks/framework_version.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr double bytes_of_gib = 1073741824.0;

using LaunchArguments = std::vector<std::pair<std::string, std::string>>;

// Where a plan takes more than a node.
struct Nodes {
  std::int64_t count = 1;
  bool cut = false;  // a replica takes more than one
  int replicas = 1;  // of a node
};

Nodes nodes_of(const ServingScenario& s, const ServingSizes& sizes) {
  const std::int64_t node = s.cluster.devices_per_node;
  Nodes nodes;
  nodes.replicas = sizes.dp;
  if (sizes.devices() <= node) return nodes;
  nodes.cut = sizes.replica() > node;
  if (nodes.cut) {
    nodes.count = (sizes.devices() + node - 1) / node;
    return nodes;
  }
  nodes.replicas = static_cast<int>(node / sizes.replica());
  while (sizes.dp % nodes.replicas != 0) --nodes.replicas;
  nodes.count = sizes.dp / nodes.replicas;
  return nodes;
}

// How weights are quantized, in both programs' words; 16 and 32 bits are not.
void add_quantization(WeightFormat format, bool vllm, LaunchArguments& all) {
  const char* word = "";
  switch (format) {
    case WeightFormat::fp8: word = "fp8"; break;
    case WeightFormat::int8: word = vllm ? "compressed-tensors" : "w8a8_int8"; break;
    case WeightFormat::int4: word = "awq_marlin"; break;
    case WeightFormat::nvfp4: word = "modelopt_fp4"; break;
    case WeightFormat::mxfp4: word = "mxfp4"; break;
    case WeightFormat::bf16:
    case WeightFormat::fp16:
    case WeightFormat::fp32: return;
  }
  all.emplace_back("quantization", word);
}

void add_dtype(WeightFormat format, LaunchArguments& all) {
  if (format == WeightFormat::fp16) all.emplace_back("dtype", "float16");
  if (format == WeightFormat::fp32) all.emplace_back("dtype", "float32");
}

// Replicas on several nodes meet at the first (vLLM, docs/serving/data_parallel_deployment.md,
// "Internal Load Balancing"); a replica on several nodes needs Ray.
void add_vllm_nodes(const ServingSizes& sizes, const Nodes& nodes, LaunchArguments& all) {
  if (nodes.cut) {
    all.emplace_back("distributed-executor-backend", "ray");
    if (sizes.dp > 1) all.emplace_back("data-parallel-backend", "ray");
  } else if (nodes.count > 1) {
    all.emplace_back("data-parallel-size-local", std::to_string(nodes.replicas));
    all.emplace_back("data-parallel-address", "\"$HEAD\"");
    all.emplace_back("data-parallel-rpc-port", "13345");
  }
}

// Independent replicas that one launch would join. vLLM cuts the experts of a layer over all ranks
// of all of them (model_executor/layers/fused_moe/config.py, FusedMoEParallelConfig); SGLang
// refuses several that are on several nodes each (server_args.py, check_server_args).
bool stands_alone(const ServingScenario& s, const ServingSizes& sizes, bool vllm) {
  if (sizes.dp == 1 || sizes.spreads_experts()) return false;
  return vllm ? s.model.experts > 0 : nodes_of(s, sizes).cut;
}

// vLLM spreads the experts of a layer over all tensor ranks of it, or none.
void require_experts(const ServingScenario& s, const ServingSizes& sizes) {
  if (sizes.ep == 1 || sizes.ep == sizes.tp || sizes.ep == sizes.tp * sizes.dp) return;
  throw ConfigError(s.plan.ep_mark,
                    fmt::format("vLLM spreads experts over all {} tensor ranks of a replica, over "
                                "those of all replicas, or not at all",
                                sizes.tp),
                    fmt::format("set plan.ep to 1, {} or {}", sizes.tp, sizes.tp * sizes.dp));
}

// A launch takes the scenario's longest request where no length is written.
std::int64_t launched_length(const ServingScenario& s) {
  return s.serving.length_open ? longest_request(s.serving) : s.serving.max_model_len;
}

// Both engines refuse more than the model's config.json has (vllm/config/model.py,
// _get_and_verify_max_len; sglang/srt/configs/model_config.py).
void require_context(const ServingScenario& s) {
  const std::int64_t longest = launched_length(s), most = s.model.context_length;
  if (most == 0 || longest <= most) return;
  throw ConfigError({s.file, 0, 0},
                    fmt::format("no engine starts with requests of {} tokens, prompt and answer, "
                                "for a model of {}",
                                longest, most),
                    "shorten input_tokens or output_tokens, or raise model.context_length where "
                    "the checkpoint's positions are scaled");
}

// vLLM starts with as many tokens a step as sequences, and, where prompts are not cut, with a step
// that holds the longest request (vllm/config/scheduler.py, verify_max_model_len): what a scenario
// leaves open follows.
ServingLimits startable(const ServingScenario& s) {
  ServingLimits limits = s.serving.limits;
  const std::int64_t longest = launched_length(s);
  if (!limits.chunked_prefill && limits.max_num_batched_tokens < longest) {
    if (!s.serving.tokens_open) {
      throw ConfigError({s.file, 0, 0},
                        fmt::format("vLLM without chunked prefill: a step of {} tokens holds no "
                                    "request of {}, prompt and answer",
                                    limits.max_num_batched_tokens, longest),
                        fmt::format("raise serving.max_num_batched_tokens to {}", longest));
    }
    limits.max_num_batched_tokens = longest;
  }
  if (s.serving.seqs_open) {
    limits.max_num_seqs = std::min(limits.max_num_seqs, limits.max_num_batched_tokens);
  } else {
    limits.max_num_batched_tokens = std::max(limits.max_num_batched_tokens, limits.max_num_seqs);
  }
  return limits;
}

// What the parser and the attention kernels take (vllm/config/cache.py,
// v1/attention/backends/flash_attn.py).
void require_block(const ServingScenario& s, std::int64_t block) {
  constexpr std::array<std::int64_t, 4> blocks{16, 32, 64, 128};
  if (std::ranges::find(blocks, block) != blocks.end()) return;
  throw ConfigError({s.file, 0, 0}, fmt::format("vLLM has no blocks of {} tokens", block),
                    "set serving.block_size to 16, 32, 64 or 128");
}

// Engines of before 0.9 swap what they preempt to host memory; later ones compute it again, and the
// argument is gone since 0.18.
bool swaps(const std::string& engine) {
  constexpr std::array<std::string_view, 5> old{"vllm-0.2", "vllm-0.4", "vllm-0.5", "vllm-0.6",
                                                "vllm-0.7"};
  return std::ranges::find(old, engine) != old.end();
}

LaunchArguments vllm_arguments(const ServingScenario& s, const ServingSizes& sizes,
                               const Nodes& nodes) {
  const ServingLimits limits = startable(s);
  LaunchArguments all{{"tensor-parallel-size", std::to_string(sizes.tp)},
                      {"pipeline-parallel-size", std::to_string(sizes.pp)}};
  if (sizes.dp > 1) all.emplace_back("data-parallel-size", std::to_string(sizes.dp));
  add_vllm_nodes(sizes, nodes, all);
  if (sizes.ep > 1) all.emplace_back("enable-expert-parallel", "");
  all.emplace_back("max-model-len", std::to_string(launched_length(s)));
  all.emplace_back("max-num-seqs", std::to_string(limits.max_num_seqs));
  all.emplace_back("max-num-batched-tokens", std::to_string(limits.max_num_batched_tokens));
  all.emplace_back(limits.chunked_prefill ? "enable-chunked-prefill" : "no-enable-chunked-prefill",
                   "");
  all.emplace_back("gpu-memory-utilization", fmt::format("{:g}", limits.gpu_memory_utilization));
  // Latent attention's kernels have blocks of their own.
  if (!s.model.latent_attention()) {
    require_block(s, limits.block_size);
    all.emplace_back("block-size", std::to_string(limits.block_size));
  }
  add_dtype(s.serving.weights, all);
  add_quantization(s.serving.weights, true, all);
  if (bytes_of(s.serving.kv_cache) < 2) all.emplace_back("kv-cache-dtype", "fp8");
  if (s.serving.prefix_hit_share > 0) all.emplace_back("enable-prefix-caching", "");
  if (!s.serving.cuda_graphs) all.emplace_back("enforce-eager", "");
  const auto gib = [](Bytes b) { return fmt::format("{:g}", b.value / bytes_of_gib); };
  if (s.serving.swap_space.value > 0 && swaps(s.serving.engine.name))
    all.emplace_back("swap-space", gib(s.serving.swap_space));
  if (s.serving.cpu_offload.value > 0)
    all.emplace_back("cpu-offload-gb", gib(s.serving.cpu_offload));
  return all;
}

// With data-parallel attention SGLang's tensor size counts all devices (docs, "DeepSeek usage"),
// and its limits are of all replicas: sglang/srt/server_args.py, _handle_data_parallelism,
// "self.chunked_prefill_size // self.dp_size" (up to 0.4 "// 2"), and
// sglang/srt/managers/tp_worker.py, "max_running_requests // (dp_size if enable_dp_attention else
// 1)".
LaunchArguments sglang_arguments(const ServingScenario& s, const ServingSizes& sizes,
                                 const Nodes& nodes) {
  const auto& limits = s.serving.limits;
  const bool spread = sizes.spreads_experts();
  const std::string& engine = s.serving.engine.name;
  const bool halves = engine == "sglang-0.3" || engine == "sglang-0.4";
  const std::int64_t sharing = spread ? sizes.dp : 1;
  const std::int64_t chunks = spread && halves ? 2 : sharing;
  const std::int64_t chunk = limits.max_num_batched_tokens;
  if (chunk % limits.block_size != 0) {
    throw ConfigError({s.file, 0, 0},
                      fmt::format("SGLang: a step of {} tokens is no multiple of blocks of {}",
                                  chunk, limits.block_size),
                      "choose a serving.block_size that divides max_num_batched_tokens");
  }
  LaunchArguments all{{"tp-size", std::to_string(spread ? sizes.tp * sizes.dp : sizes.tp)}};
  if (sizes.pp > 1) all.emplace_back("pp-size", std::to_string(sizes.pp));
  const int replicas = spread ? sizes.dp : nodes.replicas;
  if (replicas > 1) all.emplace_back("dp-size", std::to_string(replicas));
  if (spread) all.emplace_back("enable-dp-attention", "");
  if (nodes.count > 1 && (spread || nodes.cut)) {
    all.emplace_back("nnodes", std::to_string(nodes.count));
    all.emplace_back("node-rank", "\"$NODE_RANK\"");
    all.emplace_back("dist-init-addr", "\"$HEAD:5000\"");
  }
  if (sizes.ep > 1) all.emplace_back("ep-size", std::to_string(sizes.ep));
  // What does not divide is filled with copies, without which FusedMoE refuses to start.
  if (const std::int64_t rest = s.model.experts % sizes.ep; rest != 0)
    all.emplace_back("ep-num-redundant-experts", std::to_string(sizes.ep - rest));
  // Up to 0.4 the size alone spreads nothing (models/deepseek_v2.py).
  if (sizes.ep > 1 && halves) all.emplace_back("enable-ep-moe", "");
  // Each of them decodes a token of a step.
  const std::int64_t running =
      s.serving.seqs_open ? std::min(limits.max_num_seqs, chunk) : limits.max_num_seqs;
  all.emplace_back("max-running-requests", std::to_string(running * sharing));
  all.emplace_back("chunked-prefill-size", std::to_string(limits.max_num_batched_tokens * chunks));
  // Refused in a pipeline up to 0.5.10 (server_args.py, check_server_args); a pool has nothing to
  // mix.
  if (limits.chunked_prefill && sizes.pp == 1 && !s.plan.disaggregation)
    all.emplace_back("enable-mixed-chunk", "");
  all.emplace_back("mem-fraction-static", fmt::format("{:g}", limits.gpu_memory_utilization));
  if (limits.block_size > 1) all.emplace_back("page-size", std::to_string(limits.block_size));
  add_dtype(s.serving.weights, all);
  add_quantization(s.serving.weights, false, all);
  if (bytes_of(s.serving.kv_cache) < 2) all.emplace_back("kv-cache-dtype", "fp8_e4m3");
  if (s.serving.prefix_hit_share <= 0) all.emplace_back("disable-radix-cache", "");
  if (!s.serving.cuda_graphs) all.emplace_back("disable-cuda-graph", "");
  // It ends an answer two tokens before the context does (managers/scheduler.py).
  constexpr std::int64_t kept = 2;
  const std::int64_t wanted = launched_length(s) + kept, most = s.model.context_length;
  all.emplace_back("context-length", std::to_string(most > 0 ? std::min(wanted, most) : wanted));
  if (s.serving.cpu_offload.value > 0) {
    all.emplace_back("cpu-offload-gb",
                     fmt::format("{:.0f}", std::ceil(s.serving.cpu_offload.value / bytes_of_gib)));
  }
  return all;
}

std::string node_note(const ServingSizes& sizes, const Nodes& nodes, bool vllm) {
  std::string each = fmt::format(
      "{} nodes: start this on each, with NODE_RANK 0 to {} and HEAD the address of the first",
      nodes.count, nodes.count - 1);
  if (vllm && nodes.cut) {
    return fmt::format(
        "{} nodes: start Ray on all of them (ray start --head, ray start --address=HEAD:6379), and "
        "this on the first",
        nodes.count);
  }
  if (vllm || nodes.cut || sizes.spreads_experts()) return each;
  return fmt::format(
      "{} nodes: start this on each, with {} replicas, and before them "
      "python3 -m sglang_router.launch_router --worker-urls http://NODE:30000 ...",
      nodes.count, nodes.replicas);
}

// No word widens a narrow checkpoint, and of the narrow formats only fp8 is made while loading.
bool needs_checkpoint(const ServingScenario& s) {
  const CheckpointFormat own = s.model.checkpoint;
  switch (s.serving.weights) {
    case WeightFormat::int8: return own != CheckpointFormat::int8;
    case WeightFormat::int4: return own != CheckpointFormat::int4;
    case WeightFormat::nvfp4: return own != CheckpointFormat::nvfp4;
    case WeightFormat::mxfp4: return own != CheckpointFormat::mxfp4;
    case WeightFormat::fp8: return false;
    case WeightFormat::bf16:
    case WeightFormat::fp16:
    case WeightFormat::fp32: return own != CheckpointFormat::bf16;
  }
  return false;
}

std::vector<std::string> launch_notes(const ServingScenario& s, const ServingSizes& sizes,
                                      const Nodes& nodes, bool vllm) {
  std::vector<std::string> notes;
  if (needs_checkpoint(s)) {
    notes.push_back(fmt::format("{} weights need a checkpoint of that format: name it in MODEL",
                                to_string(s.serving.weights)));
  }
  if (s.serving.kv_cache == CacheFormat::int8) {
    notes.push_back(fmt::format("{} has no cache of int8: this is fp8, of as many bytes",
                                vllm ? "vLLM" : "SGLang"));
  }
  if (nodes.count > 1) notes.push_back(node_note(sizes, nodes, vllm));
  if (!vllm && sizes.spreads_experts()) {
    notes.push_back(fmt::format(
        "with data-parallel attention the limits are of all {} replicas: {} requests and {} tokens "
        "a step are of each",
        sizes.dp, s.serving.limits.max_num_seqs, s.serving.limits.max_num_batched_tokens));
  }
  if (s.serving.swap_space.value > 0 && !(vllm && swaps(s.serving.engine.name))) {
    notes.emplace_back(vllm ? "vLLM since 0.9 computes again what it preempts: swap_space is left "
                              "out, whose argument is gone since 0.18"
                            : "SGLang has no words for swap_space: left out");
  }
  if (!vllm && s.serving.limits.chunked_prefill && sizes.pp > 1 && !s.plan.disaggregation)
    notes.emplace_back("SGLang up to 0.5.10 mixes no prompts into decoding steps in a pipeline");
  if (s.serving.input.p95 > 0 || s.serving.output.p95 > 0) {
    notes.push_back(
        fmt::format("requests above {} tokens, fewer than one in a thousand, are refused",
                    longest_request(s.serving)));
  }
  return notes;
}

std::string alone_note(const ServingSizes& all, bool vllm) {
  return fmt::format(
      "this starts one of {} replicas: start it for each, on {} devices and a --port of its own "
      "(CUDA_VISIBLE_DEVICES), and spread the requests over them; {}",
      all.dp, all.replica(),
      vllm ? "--data-parallel-size would cut the experts over all of them"
           : "--dp-size is refused where a replica takes several nodes");
}

// In the words of a release, which a stack's engine of years does not have.
void write_launch_for(const FrameworkVersion& release, EngineLaunch& launch) {
  FrameworkCall call;
  for (const auto& [name, value] : launch.arguments)
    call.arguments.push_back("--" + name + (value.empty() ? "" : " " + value));
  std::ranges::move(write_for(release, call), std::back_inserter(launch.notes));
  launch.arguments.clear();
  for (std::string rest : call.arguments) {
    while (!rest.empty()) {  // a word may stand for several: "--name value --name value"
      const std::size_t next = std::min(rest.find(" --"), rest.size());
      const std::string one = rest.substr(0, next);
      const std::size_t end = std::min(one.find(' '), one.size());
      launch.arguments.emplace_back(one.substr(2, end - 2),
                                    one.substr(std::min(end + 1, one.size())));
      rest.erase(0, next + 1);
    }
  }
}

// With the engine and its version, which an import reads.
std::string head_of(const ServingScenario& s, std::int64_t devices) {
  const std::string& engine = s.serving.engine.name;
  const std::size_t at = engine.rfind('-');
  std::string head = fmt::format("{} on {} devices", printable(s.model_text), devices);
  if (at != std::string::npos && (engine.starts_with("vllm-") || engine.starts_with("sglang-")))
    head += fmt::format(", for {}=={}", engine.substr(0, at), engine.substr(at + 1));
  return head;
}

bool holds(const LaunchArguments& all, std::string_view word) {
  return std::ranges::any_of(
      all, [&](const auto& argument) { return argument.second.find(word) != std::string::npos; });
}

// From the addresses of the nodes to the command.
std::string body_of(const EngineLaunch& launch, const Nodes& nodes, bool vllm) {
  std::string text;
  const bool meet = holds(launch.arguments, "$HEAD");
  const bool engines = vllm && meet;  // the first node alone takes requests
  if (meet) {
    text += "HEAD=${HEAD:?the address of the first node}\n";
    text +=
        fmt::format("NODE_RANK=${{NODE_RANK:?0 to {}: the place of this node}}\n", nodes.count - 1);
  }
  if (engines) {
    text += fmt::format(
        "HEADLESS=()\nif [ \"$NODE_RANK\" -gt 0 ]; then\n  HEADLESS=(--headless "
        "--data-parallel-start-rank $((NODE_RANK * {})))\nfi\n",
        nodes.replicas);
  }
  text += vllm ? "\nvllm serve \"$MODEL\""
               : "\npython3 -m sglang.launch_server --model-path \"$MODEL\"";
  for (const auto& [name, value] : launch.arguments)
    text += fmt::format(" \\\n  --{}{}{}", name, value.empty() ? "" : " ", value);
  if (engines) text += " \\\n  \"${HEADLESS[@]}\"";
  return text + " \"$@\"\n";
}

std::string script_of(const std::string& head, const std::vector<std::string>& notes,
                      const std::string& body) {
  std::string text = "#!/usr/bin/env bash\n# " + head + "\n";
  for (const std::string& note : notes) text += "# " + printable(note) + "\n";
  text += "set -euo pipefail\n\n";
  return text + "MODEL=${MODEL:?the checkpoint: a name of the Hugging Face hub, or a folder}\n" +
         body;
}

// One launch, and what its script does once MODEL is known.
struct Started {
  EngineLaunch launch;
  std::string body;
};

Started started(const ServingScenario& s, const ServingSizes& all, bool vllm,
                const LaunchArguments& more, const std::string& version) {
  if (vllm) require_experts(s, all);
  ServingSizes sizes = all;  // of this launch
  const bool alone = stands_alone(s, all, vllm);
  if (alone) sizes.dp = 1;
  const Nodes nodes = nodes_of(s, sizes);
  EngineLaunch launch;
  launch.arguments = vllm ? vllm_arguments(s, sizes, nodes) : sglang_arguments(s, sizes, nodes);
  launch.arguments.insert(launch.arguments.end(), more.begin(), more.end());
  launch.notes = launch_notes(s, sizes, nodes, vllm);
  if (alone) launch.notes.push_back(alone_note(all, vllm));
  if (!version.empty())
    write_launch_for(framework_version(vllm ? "vllm" : "sglang", version), launch);
  std::string body = body_of(launch, nodes, vllm);
  return {std::move(launch), std::move(body)};
}

// Of two pools on one node: devices and ports of its own.
std::string place_on_node(const Disaggregation& pools, bool prompts, bool vllm) {
  const std::int64_t first = prompts ? 0 : pools.prefill.devices();
  const std::int64_t count = (prompts ? pools.prefill : pools.decode).devices();
  std::vector<std::int64_t> devices;
  for (std::int64_t i = 0; i < count; ++i) devices.push_back(first + i);
  std::string text = fmt::format("export CUDA_VISIBLE_DEVICES=${{CUDA_VISIBLE_DEVICES:-{}}}\n",
                                 fmt::join(devices, ","));
  // A rank of data parallelism adds its number to the port.
  if (vllm) text += fmt::format("export VLLM_NIXL_SIDE_CHANNEL_PORT={}\n", prompts ? 5600 : 5700);
  return text + fmt::format("set -- --port {} \"$@\"\n", prompts ? 8100 : 8200);
}

// vLLM's connector is the same on both sides, and a proxy decides which of them a request goes to
// first (docs/features/nixl_connector_usage.md); SGLang has a mode for each
// (docs/advanced_features/pd_disaggregation.md).
EngineLaunch pools_launch(const ServingScenario& s, const Disaggregation& pools, bool vllm,
                          const std::string& version) {
  constexpr std::array<const char*, 2> roles{"prefill", "decode"};
  EngineLaunch all;
  std::string body =
      "ROLE=${ROLE:?prefill or decode: which of the two this node serves}\n"
      "case \"$ROLE\" in prefill | decode) ;; *) echo \"ROLE is prefill or decode\" >&2; exit 2 ;; "
      "esac\n";
  body += vllm ? "export VLLM_NIXL_SIDE_CHANNEL_HOST=${VLLM_NIXL_SIDE_CHANNEL_HOST:-$(hostname -I "
                 "| cut -d' ' -f1)}\n"
               : "";
  all.notes.emplace_back(
      vllm
          ? "start this with ROLE=prefill on the devices of prompts and with ROLE=decode on the "
            "others, and before them a proxy that sends a request to the first, then to the second "
            "(vLLM's tests/v1/kv_connector/nixl_integration/toy_proxy_server.py, or llm-d)"
          : "start this with ROLE=prefill on the devices of prompts and with ROLE=decode on the "
            "others, and before them python3 -m sglang_router.launch_router --pd-disaggregation "
            "--prefill http://NODE:30000 --decode http://NODE:30000 ...");
  const bool one_node = pools.devices() <= s.cluster.devices_per_node;
  for (const char* role : roles) {
    const bool prompts = role == roles[0];
    const LaunchArguments more =
        vllm ? LaunchArguments{{"kv-transfer-config",
                                R"('{"kv_connector":"NixlConnector","kv_role":"kv_both"}')"}}
             : LaunchArguments{{"disaggregation-mode", role},
                               {"disaggregation-transfer-backend", "nixl"}};
    Started one = started(s, prompts ? pools.prefill : pools.decode, vllm, more, version);
    for (const std::string& note : one.launch.notes) {
      const std::string of_role = fmt::format("{}: {}", role, note);
      if (std::ranges::find(all.notes, of_role) == all.notes.end()) all.notes.push_back(of_role);
    }
    const std::string place = one_node ? place_on_node(pools, prompts, vllm) : "";
    body += fmt::format("\nif [ \"$ROLE\" = {} ]; then\n{}{}fi\n", role, place, one.body);
    all.pools.push_back(std::move(one.launch));
  }
  all.text = std::move(body);
  return all;
}

}  // namespace

std::string pools_refusal(const ServingScenario& s, const std::string& target) {
  if (!s.plan.disaggregation) return "";
  constexpr std::array<std::string_view, 2> early{"sglang-0.3", "sglang-0.4"};
  const std::string& engine = s.serving.engine.name;
  const bool vllm = target == "vllm";
  if (swaps(engine) || std::ranges::find(early, engine) != early.end())
    return fmt::format("{} has no words for prompts on devices of their own", engine);
  const auto& [prefill, decode] = *s.plan.disaggregation;
  if (vllm && (prefill.pp > 1 || decode.pp > 1)) {
    return "vLLM sends no keys and values between pools whose replicas are pipelines "
           "(NixlConnector "
           "takes pp 1)";
  }
  return "";
}

EngineLaunch engine_launch(const ServingScenario& s, const ServingSizes& all,
                           const std::string& target, const std::string& version) {
  const bool vllm = target == "vllm";
  if (!vllm && target != "sglang") {
    throw ConfigError({},
                      target.empty()
                          ? "shardplan: export lacks --to"
                          : fmt::format("shardplan: cannot export serving to {}", quote(target)),
                      "allowed: --to vllm, sglang");
  }
  if (const std::string why = pools_refusal(s, target); !why.empty()) {
    throw ConfigError(s.plan.mark, why,
                      fmt::format("set plan.disaggregation to none{}",
                                  vllm ? ", pp of both pools to 1, or --to sglang" : ""));
  }
  require_context(s);
  if (s.plan.disaggregation) {
    require_pools(s);
    EngineLaunch launch = pools_launch(s, *s.plan.disaggregation, vllm, version);
    launch.text =
        script_of(head_of(s, s.plan.disaggregation->devices()), launch.notes, launch.text);
    return launch;
  }
  Started one = started(s, all, vllm, {}, version);
  one.launch.text = script_of(head_of(s, all.devices()), one.launch.notes, one.body);
  return one.launch;
}

}  // namespace planner
