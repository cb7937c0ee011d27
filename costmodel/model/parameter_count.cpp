#include "costmodel/model/parameter_count.hpp"

#include <map>

#include "costmodel/model/tower.hpp"

namespace costmodel {

namespace {

double norm_parameters(const ModelSpec& model, double width) {
  return model.normalization == Normalization::layernorm ? 2 * width : width;
}

// Latent attention: down-projections, their norms, up-projections, output projection.
double latent_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden), a = static_cast<double>(m.heads);
  const double q = static_cast<double>(m.query_size()), v = static_cast<double>(m.v_head_dim);
  const double from_q = static_cast<double>(m.q_lora_rank > 0 ? m.q_lora_rank : m.hidden);
  const double kv = static_cast<double>(m.kv_lora_rank);
  double count = from_q * q + h * (kv + static_cast<double>(m.qk_pos_emb_head_dim)) +
                 norm_parameters(m, kv) + kv * a * (static_cast<double>(m.qk_head_dim) + v) +
                 a * v * h;
  if (m.q_lora_rank > 0) count += h * from_q + norm_parameters(m, from_q);
  return count;
}

// The norms of a mixer or of a feed-forward.
double part_norms(const ModelSpec& m) {
  return static_cast<double>(m.norms()) * norm_parameters(m, static_cast<double>(m.hidden));
}

// The indexer of sparse attention: queries from their latent, one key with its LayerNorm, a weight
// for each head (deepseek-ai/DeepSeek-V3.2-Exp, inference/model.py, Indexer).
double indexer_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden), a = static_cast<double>(m.index_heads);
  const double d = static_cast<double>(m.index_head_dim);
  return static_cast<double>(m.q_lora_rank) * a * d + h * d + 2 * d + h * a;
}

double attention_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden);
  const double q = static_cast<double>(m.query_size());
  const double kv = static_cast<double>(m.kv_size());
  if (m.latent_attention()) return latent_parameters(m);
  const double gate = static_cast<double>(m.gate_size());
  const double values = m.keys_as_values ? 0 : static_cast<double>(m.kv_heads * m.value_dim());
  const double columns = q + gate + kv + values;
  double count = h * columns + static_cast<double>(m.heads * m.value_dim()) * h;
  if (m.qkv_bias) count += columns;
  if (m.linear_bias) count += h;
  if (m.qk_norm && m.qk_norm_gains)
    count += m.qk_norm_whole ? q + kv : 2 * static_cast<double>(m.head_dim);
  if (m.attention_sinks) count += static_cast<double>(m.heads);
  return count;
}

// A gated delta net: in (queries, keys, values, gate, and beta and decay of each head),
// convolution without bias, decay and its bias of each head, a norm of head_dim, out.
double delta_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden), k = static_cast<double>(m.delta_key_width());
  const double v = static_cast<double>(m.delta_value_width());
  const double a = static_cast<double>(m.linear_num_value_heads);
  return h * (2 * k + 2 * v + 2 * a) + (2 * k + v) * static_cast<double>(m.conv_kernel) + 2 * a +
         static_cast<double>(m.linear_value_head_dim) + v * h;
}

// Kimi delta attention: queries, keys, values and rate; decay and gate through vectors of a head's
// size; convolutions; decay of each head and its bias of each channel; a norm of head_dim; out
// (moonshotai/Kimi-Linear-48B-A3B-Base, modeling_kimi.py, KimiDeltaAttention).
double kimi_delta_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden), k = static_cast<double>(m.delta_key_width());
  const double v = static_cast<double>(m.delta_value_width());
  const double a = static_cast<double>(m.linear_num_value_heads);
  const double d = static_cast<double>(m.linear_value_head_dim);
  return h * (2 * k + v + a + 2 * d) + d * (k + v) +
         (2 * k + v) * static_cast<double>(m.conv_kernel) +
         a * static_cast<double>(1 + m.linear_key_head_dim) + d + v * h;
}

// Queries, keys, values and gate of all heads, a norm of the result, out (MiniMax-Text-01,
// modeling_minimax_text_01.py, MiniMaxText01LightningAttention).
double lightning_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden), q = static_cast<double>(m.query_size());
  return 5 * h * q + q;
}

// Receptance, keys, values and out; the products of low rank; seven mixes of a token with the one
// before, one of them the MLP's; three biases, two weights of keys and the bonus; a group norm
// (fla-org/flash-linear-attention, layers/rwkv7.py).
double rwkv_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden);
  const double ranks = static_cast<double>(m.rwkv_decay_rank + m.rwkv_rate_rank +
                                           m.rwkv_value_rank + m.rwkv_gate_rank);
  return 4 * h * h + 2 * h * ranks + (7 + 6 + 2) * h;
}

// Both gates and what they gate, taps of every channel, out.
double convolution_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden);
  return 3 * h * h + h * static_cast<double>(m.conv_kernel) + h * h;
}

// Of Mamba-1: in (x and gate), convolution, x to time step, B and C, time step, A and D, out.
double selective_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden), inner = static_cast<double>(m.scan_width());
  const double n = static_cast<double>(m.state_size), rank = static_cast<double>(m.dt_rank);
  return h * 2 * inner + inner * static_cast<double>(m.conv_kernel + 1) + inner * (rank + 2 * n) +
         (rank + 1) * inner + inner * (n + 1) + inner * h + (m.scan_norms ? rank + 2 * n : 0);
}

// In (gate, x, B, C, dt), convolution, A, D and dt's bias, gated norm, out.
double scan_parameters(const ModelSpec& m) {
  if (m.dt_rank > 0) return selective_parameters(m);
  const double h = static_cast<double>(m.hidden), inner = static_cast<double>(m.scan_width());
  const double channels = static_cast<double>(m.conv_channels());
  const double a = static_cast<double>(m.scan_heads()), taps = static_cast<double>(m.conv_kernel);
  return h * (inner + channels + a) + channels * (taps + 1) + 3 * a +
         (m.scan_output_norm ? norm_parameters(m, inner) : 0) + inner * h;
}

double mlp_parameters(const ModelSpec& m, std::int64_t width, std::int64_t hidden) {
  const double h = static_cast<double>(hidden), ffn = static_cast<double>(width);
  const double inner = static_cast<double>(m.gates()) * ffn;
  return h * inner + ffn * h + (m.linear_bias ? inner + h : 0);
}

double mlp_parameters(const ModelSpec& m, std::int64_t width) {
  return mlp_parameters(m, width, m.hidden);
}

// Router, with a bias where products have one (Megatron-LM, core/transformer/moe/router.py;
// gpt-oss), `counted` of the experts, the products to and from their vectors, and the shared ones.
double expert_parameters(const ModelSpec& m, std::int64_t counted) {
  const double h = static_cast<double>(m.hidden), low = static_cast<double>(m.moe_latent_size);
  double count = static_cast<double>(m.experts) * (h + (m.linear_bias ? 1 : 0));
  count += static_cast<double>(counted) * mlp_parameters(m, m.expert_ffn_hidden, m.expert_width());
  if (m.moe_latent_size > 0) count += 2 * h * low + (m.linear_bias ? h + low : 0);
  if (m.shared_experts > 0) count += mlp_parameters(m, m.shared_ffn());
  if (m.shared_expert_gate) count += h;
  if (m.expert_norms) {
    count +=
        static_cast<double>(m.experts) + (m.shared_experts > 0 ? 4 : 3) * norm_parameters(m, h);
  }
  return count;
}

// A mixer without its norm.
double mixer_parameters(const ModelSpec& m, Mixer mixer) {
  switch (mixer) {
    case Mixer::none: return 0;
    case Mixer::window:
      return m.windows_differ() ? attention_parameters(m.as_windowed()) : attention_parameters(m);
    case Mixer::attention:
    case Mixer::chunked:
    case Mixer::encoder:
    case Mixer::decoder: return attention_parameters(m);
    case Mixer::sparse: return attention_parameters(m) + indexer_parameters(m);
    case Mixer::delta: return delta_parameters(m);
    case Mixer::kimi_delta: return kimi_delta_parameters(m);
    case Mixer::lightning: return lightning_parameters(m);
    case Mixer::scan: return scan_parameters(m);
    case Mixer::parallel: return attention_parameters(m) + scan_parameters(m);
    case Mixer::rwkv: return rwkv_parameters(m);
    case Mixer::short_conv: return convolution_parameters(m);
  }
  return 0;
}

// A block with its norms; of its experts, so many are counted. A parallel block may share a norm.
double block_parameters(const ModelSpec& m, const Block& block, std::int64_t counted) {
  double count = 0;
  if (block.mixer != Mixer::none) count += mixer_parameters(m, block.mixer) + part_norms(m);
  if (block.feed_forward == FeedForward::none) return count;
  count += block.feed_forward == FeedForward::experts ? expert_parameters(m, counted)
                                                      : mlp_parameters(m, m.ffn_hidden);
  return m.shared_norm ? count : count + part_norms(m);
}

// Cross-attention: queries from the decoder's tokens, keys and values from the encoder's output,
// and the preceding norm.
double cross_attention_parameters(const ModelSpec& m) {
  return attention_parameters(m) + norm_parameters(m, static_cast<double>(m.hidden));
}

// The layers of both stacks, the encoder's final norm, and a relative-position table per stack.
double encoder_decoder_parameters(const ModelSpec& m) {
  double count = static_cast<double>(m.encoder_layers) * parameters_per_layer(m) +
                 static_cast<double>(m.decoder_layers) * parameters_per_decoder_layer(m) +
                 norm_parameters(m, static_cast<double>(m.hidden));
  if (m.positions == Positions::relative)
    count += static_cast<double>(relative_buckets * (m.heads + m.as_decoder().heads));
  return count;
}

// What stands around the layers: the tables, projections to h and back, norms, an encoder's head.
double outer_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden), vocab = static_cast<double>(m.vocab);
  const double table = vocab * static_cast<double>(m.embedding_width());
  double count = table + static_cast<double>(m.max_positions) * h;
  if (m.embedding_dim > 0) count += 2 * static_cast<double>(m.embedding_dim) * h;
  count += static_cast<double>(m.token_types) * h;
  if (m.final_norm()) count += norm_parameters(m, h);
  if (m.embedding_norm) count += norm_parameters(m, h);
  if (m.head_transform) count += h * h + h + norm_parameters(m, h) + vocab;
  if (m.pooler) count += h * h + h;
  if (!m.tie_embeddings) count += table;
  return count;
}

double whole_model(const ModelSpec& m, std::int64_t counted_experts) {
  double count = outer_parameters(m);
  for (const TowerSpec& tower : towers_of(m)) count += tower_parameters(tower);
  if (m.encoder_decoder()) return count + encoder_decoder_parameters(m);
  std::map<Block, double> numbers;
  for (std::int64_t i = 0; i < m.layers; ++i) ++numbers[m.block_at(i)];
  for (const auto& [block, number] : numbers)
    count += number * block_parameters(m, block, counted_experts);
  return count;
}

}  // namespace

double parameters_per_layer(const ModelSpec& m) {
  const Mixer mixer = m.kind == ModelKind::mamba ? Mixer::scan : Mixer::attention;
  const bool alone = mixer == Mixer::scan;
  return block_parameters(m, {mixer, alone ? FeedForward::none : FeedForward::dense}, m.experts);
}

double parameters_per_decoder_layer(const ModelSpec& m) {
  const ModelSpec own = m.as_decoder();
  return parameters_per_layer(own) + cross_attention_parameters(own);
}

double parameters_per_moe_layer(const ModelSpec& m) {
  return block_parameters(m, {Mixer::attention, FeedForward::experts}, m.experts);
}

double parameter_count(const ModelSpec& m) { return whole_model(m, m.experts); }

double mtp_parameter_count(const ModelSpec& m) {
  if (m.mtp_layers == 0) return 0;
  const double h = static_cast<double>(m.hidden);
  const double start = 2 * h * h + 2 * norm_parameters(m, h);
  const double layer = block_parameters(m, m.block_at(m.layers - 1), m.experts);
  return static_cast<double>(m.mtp_layers) * (start + layer);
}

double published_parameter_count(const ModelSpec& m) {
  const double biases =
      m.router_bias ? static_cast<double>(m.experts * m.moe_layers(0, m.layers)) : 0;
  // RWKV-7's first layer has no earlier values to mix in (arXiv:2503.14456, section 4).
  const double first = static_cast<double>(m.rwkv_value_rank > 0 ? m.hidden : 0) *
                       (2 * static_cast<double>(m.rwkv_value_rank) + 1);
  double unpriced = 0;
  for (const TowerSpec& tower : towers_of(m)) unpriced += unpriced_parameters(tower);
  return parameter_count(m) + biases - first + unpriced;
}

double active_parameter_count(const ModelSpec& m) { return whole_model(m, m.top_k); }

}  // namespace costmodel
