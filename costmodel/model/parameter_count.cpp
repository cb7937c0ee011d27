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

// Attention with its norm, and the MLP's norm.
double attention_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden);
  const double q = static_cast<double>(m.query_size());
  const double kv = static_cast<double>(m.kv_size());
  if (m.latent_attention()) return latent_parameters(m) + 2 * norm_parameters(m, h);
  double count = h * (q + 2 * kv) + q * h + 2 * norm_parameters(m, h);
  if (m.qkv_bias) count += q + 2 * kv;
  if (m.linear_bias) count += h;
  if (m.qk_norm) count += 2 * static_cast<double>(m.head_dim);
  return count;
}

// In (gate, x, B, C, dt), convolution, A, D and dt's bias, gated norm, out; and the layer's norm.
double scan_parameters(const ModelSpec& m) {
  const double h = static_cast<double>(m.hidden), inner = static_cast<double>(m.scan_width());
  const double channels = static_cast<double>(m.conv_channels());
  const double a = static_cast<double>(m.scan_heads()), taps = static_cast<double>(m.conv_kernel);
  return h * (inner + channels + a) + channels * (taps + 1) + 3 * a + norm_parameters(m, inner) +
         inner * h + norm_parameters(m, h);
}

double mlp_parameters(const ModelSpec& m, std::int64_t width) {
  const double h = static_cast<double>(m.hidden), ffn = static_cast<double>(width);
  const double inner = static_cast<double>(m.gates()) * ffn;
  return h * inner + ffn * h + (m.linear_bias ? inner + h : 0);
}

// Router, `counted` of the experts, and the shared ones.
double expert_parameters(const ModelSpec& m, std::int64_t counted) {
  double count = static_cast<double>(m.experts) * static_cast<double>(m.hidden);
  count += static_cast<double>(counted) * mlp_parameters(m, m.expert_ffn_hidden);
  if (m.shared_experts > 0) count += mlp_parameters(m, m.shared_ffn());
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

double whole_model(const ModelSpec& m, std::int64_t counted_experts) {
  const double h = static_cast<double>(m.hidden);
  const std::int64_t sparse = m.moe_layers(0, m.layers);
  double count = static_cast<double>(m.vocab) * h + static_cast<double>(m.max_positions) * h;
  if (!m.layer_pattern.empty()) {
    count += pattern_parameters(m, counted_experts) + norm_parameters(m, h);
  } else if (m.encoder_decoder()) {
    count += encoder_decoder_parameters(m) + norm_parameters(m, h);
  } else {
    count +=
        static_cast<double>(m.layers - sparse) * parameters_per_layer(m) + norm_parameters(m, h);
  }
  if (sparse > 0 && m.layer_pattern.empty())
    count += static_cast<double>(sparse) * moe_layer(m, counted_experts);
  if (m.embedding_norm) count += norm_parameters(m, h);
  if (!m.tie_embeddings) count += static_cast<double>(m.vocab) * h;
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
