#include "costmodel/serving/engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/path.hpp"

namespace costmodel {

const Keys<ServingLimits>& limit_keys() {
  using L = ServingLimits;
  static const auto keys = key::rows<L>(
      key::whole<L>("max_num_seqs", &L::max_num_seqs, {1, 65'536},
                    "requests that a replica runs at the same time"),
      key::whole<L>("max_num_batched_tokens", &L::max_num_batched_tokens, {1, 4'194'304},
                    "tokens of a step that prefills"),
      key::flag<L>("chunked_prefill", &L::chunked_prefill,
                   "prompts are cut into chunks, and decode runs beside them"),
      key::number<L>("gpu_memory_utilization", &L::gpu_memory_utilization, 0.05, 1,
                     "part of the device's memory that a replica uses"),
      key::whole<L>("block_size", &L::block_size, {1, 1024}, "tokens of a block of the cache"));
  return keys;
}

const std::array<ConstantRow, constant_count>& constant_rows() {
  using C = EngineConstants;
  static const std::array<ConstantRow, constant_count> rows{{
      {"kernel_s", [](C& c) -> double& { return c.kernel.value; }, 0, 1e-3, 0.3,
       "time that each kernel adds"},
      {"memory_share", [](C& c) -> double& { return c.memory_share; }, 0.05, 1, 0.08,
       "of the device's bandwidth, that reading weights reaches"},
      {"cache_share", [](C& c) -> double& { return c.cache_share; }, 0.05, 1, 0.15,
       "of the device's bandwidth, that reading keys and values reaches"},
      {"product_factor", [](C& c) -> double& { return c.product_factor; }, 0.05, 2, 0.12,
       "rate of large products relative to the device's"},
      {"expert_factor", [](C& c) -> double& { return c.expert_factor; }, 0.05, 2, 0.4,
       "rate of the products of experts relative to others'"},
      {"expert_layer_s", [](C& c) -> double& { return c.expert_layer.value; }, 0, 1e-1, 0.7,
       "time that a layer of experts adds: choice, sorting, sums"},
      {"eager_kernel_s", [](C& c) -> double& { return c.eager_kernel.value; }, 0, 1e-3, 0.6,
       "host time to launch a kernel of a step with prompts, of which no graph is"},
      {"host_step_s", [](C& c) -> double& { return c.host_step.value; }, 0, 1, 0.5,
       "host time of a step"},
      {"host_sequence_s", [](C& c) -> double& { return c.host_sequence.value; }, 0, 0.1, 0.5,
       "host time of each sequence of a step"},
      {"request_s", [](C& c) -> double& { return c.request.value; }, 0, 10, 0.5,
       "time of a request outside the steps"},
  }};
  return rows;
}

namespace {

const Keys<EngineConstants>& constant_keys() {
  static const auto keys = [] {
    Keys<EngineConstants> all;
    for (const ConstantRow& row : constant_rows()) {
      const auto unit = row.name.ends_with("_s") ? Dimension::time : Dimension::count;
      all.push_back(key::special<EngineConstants>(
          row.name, [&row, unit] { return number_text(unit, row.least, row.most); }, row.help,
          [&row, unit](MapReader& reader, EngineConstants& constants) {
            if (const auto x = reader.number(row.name, unit, row.least, row.most))
              row.of(constants) = *x;
          }));
    }
    return all;
  }();
  return keys;
}

const Keys<EngineSpec>& engine_rows() {
  using E = EngineSpec;
  static const auto own = key::rows<E>(
      key::text<E>("title", &E::title, "for people"),
      key::text<E>("engine", &E::family, "vllm, sglang, tensorrt-llm, ..."),
      key::remark<E>("version", "the release that this describes"),
      key::flag<E>("host_overlap", &E::host_overlap,
                   "the host prepares a step while the device does the one before"),
      key::number<E>(
          "server_share", &E::server_share, 0.0, 0.95,
          "of the host's time of a step and a sequence, what a server in its process takes"),
      key::number<E>("grouped_cache", &E::grouped_cache, 0.05, 1.0,
                     "rate of reading the cache of grouped heads relative to cache_share"),
      key::number<E>("custom_all_reduce_s", &E::custom_all_reduce, 0.0, 1e-2,
                     "start of the engine's own all-reduce inside a node; 0: none"),
      key::number<E>("custom_all_reduce_most", &E::custom_most, 0.0, 1e9,
                     "the largest message that it takes"),
      key::whole<E>("stage_tensors", &E::stage_tensors, {1, 2},
                    "tensors that a stage passes on: hidden states, and the residual"),
      key::flag<E>("splits_transfers", &E::splits_transfers,
                   "each tensor rank passes on its part of them, else all of them"),
      key::word<E>("memory_share_of", &E::memory_share, memory_share_names,
                   "what gpu_memory_utilization is a share of: the device's memory, a pool of "
                   "weights and cache, or what these and the engine leave free"),
      key::number<E>("context_bytes", &E::context, 0.0, 1e11,
                     "memory outside weights, cache and activations"),
      key::number<E>("tensor_context_bytes", &E::tensor_context, 0.0, 1e11,
                     "the same with tp 2 and more; absent: as one device's"),
      key::number<E>("logit_bytes", &E::logit_bytes, 0.0, 100.0,
                     "of a request and word of the vocabulary, at the peak of sampling"),
      key::flag<E>("keeps_workspace", &E::keeps_workspace,
                   "the buffers of experts' products stay while it samples"),
      key::flag<E>("holds_longest", &E::holds_longest,
                   "it starts only where its cache holds a request of max_model_len"),
      key::flag<E>("reserves_output", &E::reserves_output,
                   "a request is admitted only when its whole output has room"),
      key::map<E>("limits", &E::limits, limit_keys()), key::source<E>());
  static const auto all = joined<E>(own, key::of_part<E>(&E::prior, constant_keys()));
  return all;
}

void read_devices(const Value& devices, const std::string& device, EngineConstants& constants) {
  for (const auto& entry : devices.entries) {
    EngineConstants other = constants;
    MapReader reader(entry.value, "devices." + entry.key);
    read_keys(reader, constant_keys(), other);
    reader.optional("source");
    reader.finish();
    if (entry.key == device) constants = other;
  }
}

std::array<double, constant_count> read_factors(const Value& map) {
  MapReader reader(map, "factors");
  std::array<double, constant_count> factors{};
  for (std::size_t i = 0; i < constant_count; ++i)
    factors[i] = reader.number(constant_rows()[i].name, Dimension::count, 1e-3, 1e3).value_or(1);
  reader.finish();
  return factors;
}

ServingFit read_fit(const Value& root) {
  ServingFit fit;
  MapReader reader(root, "serving fit");
  for (const auto& entry : reader.required("factors").entries)
    fit.factors[entry.key] = read_factors(entry.value);
  MapReader intervals(reader.required("intervals"), "intervals");
  for (std::size_t i = 0; i < interval_names.size(); ++i) {
    MapReader one(intervals.required(interval_names[i]), "interval");
    fit.intervals[i] = {one.required_number("low", Dimension::count, 1e-3, 1),
                        one.required_number("high", Dimension::count, 1, 1e3)};
    one.finish();
  }
  intervals.finish();
  fit.basis = reader.text("basis").value_or("");
  reader.optional("source");
  reader.finish();
  return fit;
}

}  // namespace

EngineConstants fitted(const EngineConstants& prior, const ServingFit& fit,
                       const std::string& family, const std::string& device) {
  EngineConstants constants = prior;
  for (const std::string& name : {std::string("shared"), family, device}) {
    const auto at = fit.factors.find(name);
    if (at == fit.factors.end()) continue;
    for (std::size_t i = 0; i < constant_count; ++i)
      constant_rows()[i].of(constants) *= at->second[i];
  }
  constants.memory_share = std::min(constants.memory_share, 0.95);
  constants.cache_share = std::min(constants.cache_share, 0.95);
  return constants;
}

ServingFit find_serving_fit(const ConfigPath& path) {
  for (const std::string& directory : path.directories) {
    const std::string file = directory + "/serving_fit.yaml";
    if (is_regular_file(file)) return read_fit(loaded(path, file));
  }
  return {};
}

std::vector<KeyText> engine_keys() { return described(engine_rows(), "engine."); }

EngineSpec read_engine(const Value& map, const std::string& name, const std::string& device) {
  EngineSpec engine;
  engine.name = name;
  MapReader reader(map, "engine");
  read_keys(reader, engine_rows(), engine);
  const auto others = [&](const char* key, std::optional<ServingLimits>& limits) {
    const Value* written = reader.optional(key);
    if (written == nullptr) return;
    limits = engine.limits;
    read_map(*written, key, limit_keys(), *limits);
  };
  others("latent_attention_limits", engine.latent_limits);
  others("small_device_limits", engine.small_limits);
  if (const Value* devices = reader.optional("devices"))
    read_devices(*devices, device, engine.prior);
  reader.finish();
  engine.constants = engine.prior;
  return engine;
}

}  // namespace costmodel
