#include "costmodel/model/parameter_count.hpp"

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

// The norms on attention and on the MLP; a parallel block may share one.
double layer_norms(const ModelSpec& m) {
  const double each = norm_parameters(m, static_cast<double>(m.hidden));
  return (m.shared_norm ? 1 : 2 * static_cast<double>(m.norms())) * each;
}

// Attention with its norm, and the MLP's norm.
double attention_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden);
  const double q = static_cast<double>(m.query_size());
  const double kv = static_cast<double>(m.kv_size());
  const double norms = layer_norms(m);
  if (m.latent_attention()) return latent_parameters(m) + norms;
  const double gate = m.attention_gate ? q : 0;
  double count = h * (q + gate + 2 * kv) + q * h + norms;
  if (m.qkv_bias) count += q + gate + 2 * kv;
  if (m.linear_bias) count += h;
  if (m.qk_norm) count += m.qk_norm_whole ? q + kv : 2 * static_cast<double>(m.head_dim);
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

// Of Mamba-1: in (x and gate), convolution, x to time step, B and C, time step, A and D, out; norm.
double selective_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden), inner = static_cast<double>(m.scan_width());
  const double n = static_cast<double>(m.state_size), rank = static_cast<double>(m.dt_rank);
  return h * 2 * inner + inner * static_cast<double>(m.conv_kernel + 1) + inner * (rank + 2 * n) +
         (rank + 1) * inner + inner * (n + 1) + inner * h + norm_parameters(m, h);
}

// In (gate, x, B, C, dt), convolution, A, D and dt's bias, gated norm, out; and the layer's norm.
double scan_parameters(const ModelSpec& m) {
  if (m.dt_rank > 0) return selective_parameters(m);
  const double h = static_cast<double>(m.hidden), inner = static_cast<double>(m.scan_width());
  const double channels = static_cast<double>(m.conv_channels());
  const double a = static_cast<double>(m.scan_heads()), taps = static_cast<double>(m.conv_kernel);
  return h * (inner + channels + a) + channels * (taps + 1) + 3 * a + norm_parameters(m, inner) +
         inner * h + norm_parameters(m, h);
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
  return count;
}

// A layer with experts, of which `counted` are counted.
double moe_layer(const ModelSpec& m, std::int64_t counted) {
  return attention_parameters(m) + expert_parameters(m, counted);
}

// The layers of a pattern: each has one norm, attention_parameters counts two.
double pattern_parameters(const ModelSpec& m, std::int64_t counted_experts) {
  const double one_norm = norm_parameters(m, static_cast<double>(m.hidden));
  const auto layers = [&](char letter) {
    return static_cast<double>(m.layers_of(letter, 0, m.layers));
  };
  double count = layers('*') * (attention_parameters(m) - one_norm) +
                 layers('G') * (delta_parameters(m) + one_norm) +
                 layers('-') * (mlp_parameters(m, m.ffn_hidden) + one_norm);
  if (m.state_size > 0) count += layers('M') * scan_parameters(m);
  if (m.experts > 0) count += layers('E') * (expert_parameters(m, counted_experts) + one_norm);
  return count;
}

// Cross-attention: queries from the decoder's tokens, keys and values from the encoder's output,
// and the preceding norm.
double cross_attention_parameters(const ModelSpec& m) {
  return attention_parameters(m) - norm_parameters(m, static_cast<double>(m.hidden));
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
  const double outer = outer_parameters(m);
  if (!m.layer_pattern.empty()) return outer + pattern_parameters(m, counted_experts);
  if (m.encoder_decoder()) return outer + encoder_decoder_parameters(m);
  const std::int64_t sparse = m.moe_layers(0, m.layers);
  double count = outer + static_cast<double>(m.layers - sparse) * parameters_per_layer(m);
  if (sparse > 0) count += static_cast<double>(sparse) * moe_layer(m, counted_experts);
  const std::int64_t deltas = m.attention_layers('D', 0, m.layers);
  if (deltas > 0) {  // in place of attention; the norms are the same
    count += static_cast<double>(deltas) *
             (delta_parameters(m) + layer_norms(m) - attention_parameters(m));
  }
  return count;
}

}  // namespace

double parameters_per_layer(const ModelSpec& m) {
  if (m.state_size > 0) return scan_parameters(m);
  return attention_parameters(m) + mlp_parameters(m, m.ffn_hidden);
}

double parameters_per_decoder_layer(const ModelSpec& m) {
  const ModelSpec own = m.as_decoder();
  return parameters_per_layer(own) + cross_attention_parameters(own);
}

double parameters_per_moe_layer(const ModelSpec& m) { return moe_layer(m, m.experts); }

double parameter_count(const ModelSpec& m) { return whole_model(m, m.experts); }

double active_parameter_count(const ModelSpec& m) { return whole_model(m, m.top_k); }

}  // namespace costmodel
