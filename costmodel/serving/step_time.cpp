#include "costmodel/serving/step_time.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/base/error.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/expert_exchange.hpp"
#include "costmodel/serving/served_program.hpp"
#include "costmodel/serving/serving_memory.hpp"
#include "costmodel/serving/serving_reader.hpp"

namespace costmodel {

namespace {

// Rows of the smallest tile of a product: one of fewer rows takes as long. The device's of a
// library's products; 16 of kernels that engines have for few rows, of experts (vLLM and SGLang,
// fused_moe's BLOCK_SIZE_M) and of 4 bits (Marlin, arXiv:2408.11743). fp32 on CPUs: 8 columns of 48
// in oneDNN (src/cpu/gemm/f32/jit_avx512_common_gemm_f32.cpp, UNROLL_N), whose column-major columns
// are our rows.
double least_rows(const DeviceSpec& device, WeightFormat format, bool expert) {
  if (format == WeightFormat::fp32) return 8;
  return expert || bytes_of(format) < 1 ? 16 : device.gemm_tile_rows;
}

// Bandwidth of a link that is not PCIe: PCIe 5.0 x16 has 63 GB/s. Engines use an all-reduce of
// their own on those alone, or between two devices (vLLM, custom_all_reduce.py: "custom allreduce
// is disabled ... more than two PCIe-only GPUs").
constexpr double fast_link = 100e9;

// Kernels of a layer of experts beside its products: the choice, sorting by expert, the sum.
constexpr double expert_kernels = 4;

Precision unquantised(const DeviceSpec& device, WeightFormat format) {
  if (format == WeightFormat::fp32) return Precision::fp32;
  return device.peak_of(Precision::bf16).value > 0 ? Precision::bf16 : Precision::fp16;
}

// The precision whose products a format takes on a device, 16 bits where it has none narrower.
Precision products_of(const DeviceSpec& device, WeightFormat format) {
  const auto has = [&](Precision p) { return device.peak_of(p).value > 0; };
  if (format == WeightFormat::nvfp4 && has(Precision::nvfp4)) return Precision::nvfp4;
  const bool eight = format == WeightFormat::fp8 || format == WeightFormat::int8;
  if (eight && has(Precision::fp8)) return Precision::fp8;
  return unquantised(device, format);
}

// int8 has the rate of fp8 where a device has it, else twice that of 16 bits (NVIDIA A100 data
// sheet: 624 TOPS beside 312 TFLOP/s), and no more on devices without bf16.
double product_rate(const DeviceSpec& device, WeightFormat format) {
  const Precision precision = products_of(device, format);
  const bool doubled = format == WeightFormat::int8 && precision == Precision::bf16;
  return device.peak_of(precision).value * device.gemm_efficiency_of(precision) * (doubled ? 2 : 1);
}

// Whether activations are quantised for products with these weights.
bool casts(const DeviceSpec& device, WeightFormat format) {
  return format == WeightFormat::int8 || is_narrow(products_of(device, format));
}

// Token counts of the grid: 1 to 64, then eight between powers of two, as far as a step goes.
double grid_tokens(std::size_t i) {
  if (i < 64) return static_cast<double>(i + 1);
  const std::size_t octave = (i - 64) / 8, step = (i - 64) % 8 + 1;
  return 64 * std::pow(2.0, static_cast<double>(octave)) * (1 + static_cast<double>(step) / 8);
}
std::size_t grid_place(double tokens) {  // the last place not above
  if (tokens < 64) return static_cast<std::size_t>(std::max(1.0, tokens)) - 1;
  const double octave = std::floor(std::log2(tokens / 64));
  const double start = 64 * std::pow(2.0, octave);
  return 63 + static_cast<std::size_t>(octave * 8 + std::floor((tokens / start - 1) * 8));
}
constexpr std::size_t grid_places = 64 + 8 * 17;  // up to eight million tokens

}  // namespace

StepLoad StepLoad::part(double decoding, double prompting) const {
  return {decodes / decoding,        decode_context / decoding, prefill_tokens / prompting,
          prefill_pairs / prompting, prompts / prompting,       prefilling / prompting};
}

StepParts& StepParts::add(const StepParts& o, double times) {
  for (Seconds StepParts::*part :
       {&StepParts::weights, &StepParts::cache, &StepParts::products, &StepParts::streams,
        &StepParts::collectives, &StepParts::transfers, &StepParts::host, &StepParts::arithmetic,
        &StepParts::reading, &StepParts::passing})
    this->*part += o.*part * times;
  kernels += o.kernels * times;
  return *this;
}

StepTimes::StepTimes(const ModelSpec& model, const ClusterSpec& cluster, const ServingSpec& serving,
                     const ServingSizes& sizes)
    : model_(model),
      cluster_(cluster),
      serving_(serving),
      sizes_(sizes),
      stack_(stack_of(model)),
      tensor_(layout_of(sizes.tp, 1, cluster)),
      experts_(layout_of(sizes.ep, 1, cluster)),
      layers_(grid_places),
      heads_(grid_places) {
  SHARDPLAN_CHECK(sizes_fault(sizes, model, cluster).empty());
  held_ = costmodel::weights_held(model, serving.weights, sizes);
  model_.dropout = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    windows_ += model.attention_at(layer) == 'S' ? 1 : 0;
    chunks_ += model.attention_at(layer) == 'C' ? 1 : 0;
  }
  const EngineSpec& engine = serving.engine;
  const bool grouped = model.kv_heads < model.heads && !model.latent_attention();
  const double share = engine.constants.cache_share * (grouped ? engine.grouped_cache : 1);
  weight_rate_ = cluster.device.memory_bandwidth * engine.constants.memory_share;
  cache_rate_ = cluster.device.memory_bandwidth * share;
}

void StepTimes::add_product(const ServedProduct& p, double times, StepParts& sum) const {
  const DeviceSpec& device = cluster_.device;
  const double element = element_bytes(serving_.weights);
  const WeightFormat format = p.narrow || element > 2 ? serving_.weights : WeightFormat::bf16;
  const double read = std::max(1.0, p.read);
  const double rows = p.rows / read;  // of each matrix
  const double tile = least_rows(device, format, p.expert);
  const double padded = std::ceil(std::max(rows, 1.0) / tile) * tile;
  const double fill = tile_fill(read, std::max(64.0, padded), p.columns, device.multiprocessors);
  const double depth = p.inner / (p.inner + device.gemm_half_k);
  const double factor = p.expert ? constants().expert_factor : 1;
  const double rate =
      product_rate(device, format) * depth * fill * constants().product_factor * factor;
  const Seconds arithmetic(2 * read * padded * p.columns * p.inner / rate);
  const BytesPerSecond reached = weight_rate_ * factor;
  const Seconds weights = Bytes(p.read * p.columns * p.inner * bytes_of(format)) / reached;
  const Seconds reading = weights + Bytes(element * p.rows * (p.inner + p.columns)) / reached;
  sum.weights += times * min(weights, max(arithmetic, reading));
  sum.products += times * (max(arithmetic, reading) - weights);
  sum.arithmetic += times * arithmetic;
  sum.reading += times * reading;
  double kernels = 1;
  if (p.narrow && casts(device, format)) {
    kernels += 1;
    sum.streams += times * (Bytes(3 * p.rows * p.inner) / weight_rate_);
  }
  sum.streams += times * kernels * constants().kernel;
  sum.kernels += times * kernels;
}

Seconds StepTimes::all_reduce(double tokens) const {
  if (sizes_.tp == 1) return Seconds(0);
  const Bytes message = hidden_states(model_, tokens, element_bytes(serving_.weights));
  const Seconds usual = collective_time(CollectiveKind::all_reduce, message, tensor_, cluster_);
  const EngineSpec& engine = serving_.engine;
  const bool inside = tensor_.outermost() == 0;
  const Tier& tier = cluster_.tiers.front();
  if (engine.custom_all_reduce.value <= 0 || !inside || message > engine.custom_most) return usual;
  if (tier.bandwidth.value < fast_link && sizes_.tp > 2) return usual;
  const BytesPerSecond reached = tier.reached(sizes_.tp);
  const double others = sizes_.tp - 1;
  // All read the whole message of all, or each sums a part and all gather the sums.
  const Seconds once = engine.custom_all_reduce + others * message / reached;
  const Seconds twice = 2 * engine.custom_all_reduce + 2 * others / sizes_.tp * message / reached;
  return min(usual, min(once, twice));
}

double StepTimes::all_reduces() const {
  if (sizes_.tp == 1) return 0;
  const double ffn = sizes_.spreads_experts() ? stack_.dense : stack_.layers();
  return stack_.layers() + (model_.parallel_block ? 0 : ffn) + 1;
}

// Dispatch and combine of the tokens of a rank over the ranks that share the experts, and the
// gather of its tensor ranks' parts.
void StepTimes::add_exchange(double tokens, StepParts& sum) const {
  if (!sizes_.spreads_experts()) return;
  ExpertRouting routing;
  routing.dispatcher = Dispatcher::deepep;
  routing.top_k = model_.top_k;
  routing.groups = model_.expert_groups;
  routing.groups_per_token = model_.expert_groups_per_token;
  const double own =
      tokens / sizes_.tp * static_cast<double>(model_.hidden) * static_cast<double>(model_.top_k);
  const double sent = serving_.weights == WeightFormat::fp8 ? 1 : 2;  // dispatch in fp8
  const Seconds there = expert_exchange(Bytes(own * sent), routing, experts_, cluster_).time;
  const Seconds back = expert_exchange(Bytes(own * 2), routing, experts_, cluster_).time;
  const Seconds gather =
      collective_time(CollectiveKind::all_gather,
                      Bytes(tokens * static_cast<double>(model_.hidden) * 2), tensor_, cluster_);
  sum.collectives += stack_.sparse * (there + back + gather);
}

void StepTimes::add_layer(LayerKind kind, double layers, double tokens, StepParts& sum) const {
  if (layers <= 0) return;
  const ServedLayer layer = served_layer(kind, model_, sizes_, tokens, serving_.weights);
  for (const ServedProduct& p : layer.products) add_product(p, layers, sum);
  sum.streams += layers * (layer.streamed / weight_rate_ + layer.kernels * constants().kernel);
  sum.kernels += layers * layer.kernels;
}

StepParts StepTimes::priced(double tokens) const {
  StepParts sum;
  for (const ServedLayers& own : served_layers(model_))
    add_layer(own.kind, own.number, tokens, sum);
  add_layer(LayerKind::embedding, 1, tokens, sum);
  sum.streams += stack_.sparse * constants().expert_layer;
  sum.kernels += stack_.sparse * expert_kernels + all_reduces();
  sum.collectives += all_reduces() * all_reduce(tokens);
  add_exchange(tokens, sum);
  return sum;
}

StepParts StepTimes::priced_head(double rows) const {
  StepParts sum;
  add_layer(LayerKind::head, 1, rows, sum);
  if (sizes_.tp > 1) {
    const Bytes logits =
        gathered_logits(static_cast<double>(model_.vocab), rows, element_bytes(serving_.weights));
    sum.collectives += collective_time(CollectiveKind::all_gather, logits, tensor_, cluster_);
  }
  return sum;
}

StepParts StepTimes::between(Grid& grid, double tokens,
                             StepParts (StepTimes::*price)(double) const) const {
  const std::size_t at = std::min(grid_place(tokens), grid_places - 2);
  for (const std::size_t i : {at, at + 1})
    if (!grid[i]) grid[i] = (this->*price)(grid_tokens(i));
  const double low = grid_tokens(at), high = grid_tokens(at + 1);
  const double share = std::clamp((tokens - low) / (high - low), 0.0, 1.0);
  return StepParts().add(*grid[at], 1 - share).add(*grid[at + 1], share);
}

// A layer with a window reads no more keys than it has, one with chunks half of one in the mean.
double StepTimes::keys_read(double mean, double of_window) const {
  const auto window = static_cast<double>(model_.sliding_window),
             chunk = static_cast<double>(model_.attention_chunk) / 2;
  return mean * (stack_.layers() - windows_ - chunks_) +
         of_window * windows_ * std::min(mean, window) + chunks_ * std::min(mean, chunk);
}

// Of the part's own tokens through all stages.
StepParts StepTimes::part_of_batch(const StepLoad& load) const {
  StepParts parts = between(layers_, std::max(1.0, load.tokens()), &StepTimes::priced);
  parts.add(between(heads_, std::max(1.0, load.decodes + load.prompts), &StepTimes::priced_head),
            1);
  const DeviceSpec& device = cluster_.device;
  const double layers = stack_.layers();
  const double heads = std::max(1.0, static_cast<double>(model_.heads) / sizes_.tp);
  const double peak =
      device.peak_of(unquantised(device, serving_.weights)).value * device.attention_forward;
  const auto key = static_cast<double>(model_.head_dim);
  const auto value = static_cast<double>(model_.value_dim());
  // What a key of a layer with a window costs, over one of the others.
  const ModelSpec windowed = model_.windows_differ() ? model_.as_windowed() : ModelSpec();
  const double wide =
      model_.windows_differ()
          ? static_cast<double>(windowed.heads * (windowed.head_dim + windowed.value_dim())) /
                (static_cast<double>(model_.heads) * (key + value))
          : 1;
  const Seconds kernel = constants().kernel;
  if (load.decodes > 0) {
    const auto rank = static_cast<double>(model_.kv_lora_rank);
    // Latent attention reads the latent vector once for all heads, as key and as value.
    const double a_key = model_.latent_attention()
                             ? 2 * rank + static_cast<double>(model_.qk_pos_emb_head_dim)
                             : key + value;
    const double context = load.decode_context / load.decodes;
    const double keys = load.decodes * keys_read(context, wide);
    const double arithmetic = 2 * heads * a_key * keys / peak;
    const auto cache = [&](const ModelSpec& model) {
      return layer_cache_bytes(model, sizes_.tp, serving_.kv_cache).value;
    };
    const double stored = model_.windows_differ()
                              ? load.decodes * keys_read(context, cache(windowed) / cache(model_))
                              : keys;
    const double reading = cache(model_) * stored / cache_rate_.value;
    parts.cache = Seconds(reading);
    parts.products += Seconds(std::max(0.0, arithmetic - reading));
    parts.streams += kernel * (2 * layers);  // attention, and the merge of its parts
    parts.arithmetic += Seconds(arithmetic);
    parts.reading += Seconds(reading);
  }
  if (load.prefill_tokens > 0) {
    const double mean_keys = 2 * load.prefill_pairs / load.prefill_tokens;
    const double reached = mean_keys / (mean_keys + device.attention_half_sequence);
    const double pairs =
        load.prefill_tokens * keys_read(load.prefill_pairs / load.prefill_tokens, wide);
    const double arithmetic = 2 * heads * (key + value) * pairs / (peak * reached);
    parts.products += Seconds(arithmetic);
    parts.arithmetic += Seconds(arithmetic);
    parts.streams += kernel * layers;
    parts.kernels += layers;
  }
  return parts;
}

// Of a part of the step with as many prompts as fall on it, one at least, through all stages.
Seconds StepTimes::pass_of_prompt(const StepLoad& load) const {
  const int pp = sizes_.pp;
  const double parts = std::clamp(load.prefilling, 1.0, static_cast<double>(pp));
  const StepLoad part = load.part(pp, parts);
  return part_of_batch(part).total() + (pp - 1) * passing_on(part);
}

Seconds StepTimes::passing_on(const StepLoad& part) const {
  const Bytes message = passed_on(model_, serving_.engine, sizes_.tp, std::max(1.0, part.tokens()),
                                  element_bytes(serving_.weights));
  return transfer_time(message, tier_between(sizes_.pp, sizes_.tp, cluster_), sizes_.tp, cluster_);
}

StepParts StepTimes::of(const StepLoad& load) const {
  const int pp = sizes_.pp;
  const StepLoad share = load.part(pp, pp);
  const StepParts one = part_of_batch(share);
  // A round takes pp times the slowest stage, whose layers are the ceiling of their share.
  StepParts parts;
  parts.add(one, std::ceil(stack_.layers() / pp) * pp / stack_.layers());
  if (pp > 1) parts.transfers += pp * passing_on(share);
  if (serving_.cpu_offload.value > 0)  // of the weights, whatever is allowed
    parts.transfers += min(serving_.cpu_offload, held_) / cluster_.device.host_bandwidth * pp;
  const EngineSpec& engine = serving_.engine;
  const double own = serving_.offline ? 1 - engine.server_share : 1;
  const Seconds host = own * (constants().host_step * pp +
                              constants().host_sequence * (load.decodes + load.prompts));
  const Seconds device = parts.total();
  // Graphs are of steps that decode alone: with prompts the host launches each kernel, ahead of the
  // device, or the device waits for it.
  const bool launched = load.prefill_tokens > 0 || !serving_.cuda_graphs;
  const Seconds launches = launched ? constants().eager_kernel * parts.kernels : Seconds(0);
  const auto waits = [&](Seconds busy) {
    return engine.host_overlap ? max(Seconds(0), host + launches - busy)
                               : host + max(Seconds(0), launches - busy);
  };
  parts.host = waits(device);
  if (pp > 1 && load.prefill_tokens > 0) {
    const Seconds pass = pass_of_prompt(load);
    parts.passing = max(Seconds(0), pass + waits(pass) - parts.total());
  }
  return parts;
}

}  // namespace costmodel
