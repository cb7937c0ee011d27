#include "costmodel/model/model_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "costmodel/base/units.hpp"
#include "costmodel/model/tower_reader.hpp"

namespace costmodel {

namespace {

using M = ModelSpec;

constexpr IntegerRange widths{1, 4'194'304}, small_widths{1, 65'536}, ffn_widths{1, 16'777'216};

// The llama family's usual choices: rotary positions, RMSNorm, gated SiLU, no biases, no dropout.
bool is_llama(const M& model) {
  return model.kind != ModelKind::gpt && model.kind != ModelKind::t5;
}

// Nemotron-H's (arXiv:2504.03624, section 2.1): no positions, squared ReLU without a gate, RMSNorm,
// no biases, no dropout, embeddings not tied.
bool is_hybrid(const M& model) { return model.kind == ModelKind::hybrid; }

// T5's (Raffel et al. 2020, section 2.1; transformers, T5Config): relative positions, a norm
// without bias, ReLU, no biases, dropout 0.1.
bool is_t5(const M& model) { return model.kind == ModelKind::t5; }

bool is_mamba(const M& model) { return model.kind == ModelKind::mamba; }

// Nemotron-3 and 4, known by their activation, are gpt without biases and dropout and with rotary
// positions (arXiv:2402.16819, section 2; NVIDIA/NeMo r2.3.0, nemo/collections/llm/gpt/model/
// nemotron.py).
bool is_nemotron(const M& model) { return model.activation == ActivationFunction::squared_relu; }

// The family's usual value where the key is absent.
template <class Field, class Usual>
Key<M> usually(Key<M> row, Field field, Usual usual) {
  row.read = [=, read = row.read](MapReader& reader, M& model) {
    model.*field = usual(model);
    read(reader, model);
  };
  return row;
}

// ... and said in `assumed`, for keys that affect the result.
template <class Fields, class Value, class Usual>
Key<M> assumed(Key<M> row, Value Fields::*field, Usual usual) {
  row.read = [=, name = row.name, read = row.read](MapReader& reader, M& model) {
    if (reader.optional(name) != nullptr) return read(reader, model);
    model.*field = usual(model);
    model.assumed.push_back(fmt::format("{} {}", name, model.*field));
  };
  return row;
}

Key<M> assumed_size(std::string_view name, std::int64_t M::*field, std::int64_t usual,
                    std::string_view help) {
  return assumed(key::whole<M>(name, field, small_widths, help), field,
                 [usual](const M&) { return usual; });
}

// A size, or 0.
Key<M> size_or_none(std::string_view name, std::int64_t M::*field, std::string_view help) {
  return key::whole<M>(name, field, {0, small_widths.most}, help);
}

// Of the products of low rank of RWKV-7.
Key<M> rank(std::string_view name, std::int64_t M::*field, std::string_view of) {
  static std::deque<std::string> texts;  // a key refers to its help
  texts.push_back(fmt::format("of the product of low rank that RWKV-7's {} comes from", of));
  return key::required(key::whole<M>(name, field, small_widths, texts.back()));
}

// A number that changes neither time nor memory.
Key<M> for_exports(std::string_view name, double M::*field, std::string_view help) {
  return key::number<M>(name, field, 0, 1e9, help);
}

// ... of one kind of scaling of rotary positions, whose usual value it has there.
Key<M> of_scaling(std::string_view name, double M::*field, RopeScaling kind, double usual,
                  std::string_view help) {
  return usually(for_exports(name, field, help), field,
                 [=](const M& m) { return m.rope_scaling == kind ? usual : 0; });
}

// A count of at most what `most` says of the model, `words` for people.
template <class Most>
Key<M> count_to(std::string_view name, std::int64_t M::*field, std::int64_t least,
                const char* words, Most most, std::string_view help) {
  return key::special<M>(name, key::fixed_text(words), help, [=](MapReader& reader, M& model) {
    if (const auto n = reader.integer(name, {least, most(model)})) model.*field = *n;
  });
}

using P = ModelPart;
using Table = std::vector<std::pair<P, Key<M>>>;  // in the order in which keys are listed

template <class... Rows>
void add(Table& table, P part, Rows... rows) {
  (table.push_back({part, std::move(rows)}), ...);
}

void add_sizes(Table& table) {
  // Every Llama 3, known by its vocabulary, shares 8 key/value heads (arXiv:2407.21783, table 3).
  constexpr std::int64_t llama3_vocab = 128'256, llama3_kv_heads = 8;
  add(table, P::kind, key::required(key::word<M>("kind", &M::kind, model_kind_names, "family")));
  add(table, P::layers,
      key::whole<M>("layers", &M::layers, layer_counts,
                    "l; required but of t5 (its sum) and hybrid (the pattern's length)"));
  add(table, P::hidden,
      key::required(key::whole<M>("hidden", &M::hidden, widths, "h, hidden size")));
  add(table, P::heads,
      key::whole<M>("heads", &M::heads, layer_counts,
                    "a, attention heads; required but of mamba (2h / head_dim)"));
  add(table, P::kv_heads,
      assumed(key::whole<M>("kv_heads", &M::kv_heads, layer_counts,
                            "heads of keys and values; absent: heads (Llama 3: 8)"),
              &M::kv_heads, [](const M& m) {
                const bool llama3 = m.kind == ModelKind::llama && m.vocab == llama3_vocab &&
                                    m.heads % llama3_kv_heads == 0;
                return llama3 ? llama3_kv_heads : m.heads;
              }));
  add(table, P::head_dim,
      key::whole<M>("head_dim", &M::head_dim, small_widths,
                    "of queries and keys; absent: h/a (mamba: 64)"));
  add(table, P::ffn,
      key::whole<M>("ffn_hidden", &M::ffn_hidden, ffn_widths,
                    "inner size of the MLP; absent: 4h, llama 8h/3 rounded up to 256"));
  add(table, P::mlp,
      assumed(key::flag<M>("gated_mlp", &M::gated_mlp, "gate and up projection, multiplied"),
              &M::gated_mlp, [](const M& m) { return is_llama(m) && !is_hybrid(m); }),
      usually(key::word<M>("activation", &M::activation, activation_names,
                           "of the MLP; absent: the family's"),
              &M::activation, [](const M& m) {
                return is_hybrid(m)  ? ActivationFunction::squared_relu
                       : is_llama(m) ? ActivationFunction::silu
                       : is_t5(m)    ? ActivationFunction::relu
                                     : ActivationFunction::gelu;
              }));
  add(table, P::vocab,
      key::whole<M>("vocab", &M::vocab, {1, 100'000'000},
                    "V, before padding; absent: the family's"));
}

void add_rotation(Table& table) {
  add(table, P::rotary,
      key::number<M>("rotary_base", &M::rotary_base, 1, 1e12, "of rotary positions; for exports"),
      key::number<M>("rotary_percent", &M::rotary_percent, 1e-3, 1,
                     "part of a head that is rotated; for exports"),
      key::number<M>("rope_scaling_factor", &M::rope_scaling_factor, 0, 1e4,
                     "by which rotary positions are stretched; for exports; 0: none"),
      usually(key::word<M>("rope_scaling_type", &M::rope_scaling, rope_scaling_names,
                           "how they are; for exports; absent: llama3 with a factor"),
              &M::rope_scaling,
              [](const M& m) {
                return m.rope_scaling_factor > 0 ? RopeScaling::llama3 : RopeScaling::none;
              }),
      usually(
          key::whole<M>("rope_original_positions", &M::rope_original_positions, {0, 1'000'000'000},
                        "tokens of a sequence before they are; for exports; 0: not known; "
                        "absent: llama3's 8192"),
          &M::rope_original_positions,
          [](const M& m) { return m.rope_scaling == RopeScaling::llama3 ? 8192 : 0; }),
      of_scaling("rope_low_freq_factor", &M::rope_low_freq_factor, RopeScaling::llama3, 1,
                 "llama3's; absent: 1; for exports"),
      of_scaling("rope_high_freq_factor", &M::rope_high_freq_factor, RopeScaling::llama3, 4,
                 "llama3's; absent: 4; for exports"),
      of_scaling("rope_beta_fast", &M::rope_beta_fast, RopeScaling::yarn, 32,
                 "yarn's; absent: 32; for exports"),
      of_scaling("rope_beta_slow", &M::rope_beta_slow, RopeScaling::yarn, 1,
                 "yarn's; absent: 1; for exports"),
      for_exports("rope_mscale", &M::rope_mscale, "yarn's (DeepSeek); 0: not given; for exports"),
      for_exports("rope_mscale_all_dim", &M::rope_mscale_all_dim, "as rope_mscale; for exports"));
}

void add_choices(Table& table) {
  add(table, P::position_table,
      usually(key::tokens<M>("max_positions", &M::max_positions, {0, 1'000'000'000},
                             "rows of a table of learned positions; 0: rotary"),
              &M::max_positions, [](const M&) { return absent_positions; }));
  add(table, P::positions,
      usually(key::word<M>("positions", &M::positions, positions_names,
                           "how a token knows its place; absent: the family's"),
              &M::positions, [](const M& m) {
                if (is_t5(m)) return m.max_positions > 0 ? Positions::learned : Positions::relative;
                if (is_hybrid(m)) return Positions::none;
                return is_llama(m) || is_nemotron(m) || m.max_positions == 0 ? Positions::rotary
                                                                             : Positions::learned;
              }));
  add_rotation(table);
  add(table, P::norms_and_biases,
      assumed(key::flag<M>("tie_embeddings", &M::tie_embeddings,
                           "the output projection shares the token embedding"),
              &M::tie_embeddings, [](const M& m) { return is_mamba(m) || !is_llama(m); }),
      usually(key::word<M>("normalization", &M::normalization, normalization_names,
                           "absent: the family's"),
              &M::normalization,
              [](const M& m) {
                return is_llama(m) || is_t5(m) ? Normalization::rmsnorm : Normalization::layernorm;
              }),
      for_exports("norm_epsilon", &M::norm_epsilon,
                  "of normalisations; 0: the framework's own; for exports"),
      key::flag<M>("layernorm_1p", &M::layernorm_1p,
                   "norms store their weights less 1 (Nemotron-4); for exports"),
      assumed(key::flag<M>("linear_bias", &M::linear_bias, "of all products"), &M::linear_bias,
              [](const M& m) { return !is_llama(m) && !is_nemotron(m) && !is_t5(m); }),
      usually(key::flag<M>("qkv_bias", &M::qkv_bias,
                           "of queries, keys and values; absent: linear_bias"),
              &M::qkv_bias, [](const M& m) { return m.linear_bias; }));
}

void add_block(Table& table) {
  add(table, P::block, key::flag<M>("qk_norm", &M::qk_norm, "normalised queries and keys (Qwen3)"),
      key::flag<M>("qk_norm_whole", &M::qk_norm_whole, "qk_norm over all heads at once (OLMo 2)"),
      key::flag<M>("qk_norm_gains", &M::qk_norm_gains, "qk_norm has weights; false: Llama 4"),
      key::word<M>("norm_placement", &M::norm_placement, norm_placement_names,
                   "of a layer's norms: before attention and MLP, both before and on "
                   "their results, on those (branch), after the residual"),
      key::flag<M>("attention_gate", &M::attention_gate,
                   "the result of attention times a sigmoid (Qwen3-Next)"),
      key::flag<M>("head_gate", &M::head_gate,
                   "each head's result times a sigmoid of one logit (Step 3.5)"),
      key::flag<M>("attention_sinks", &M::attention_sinks,
                   "a learned logit a head beside its scores (gpt-oss)"),
      key::flag<M>("shared_norm", &M::shared_norm,
                   "one norm before both parts of a parallel block (Falcon 7B)"),
      key::whole<M>("embedding_dim", &M::embedding_dim, {0, widths.most},
                    "of the token table, projected to hidden (OPT 350M); 0: hidden"),
      key::flag<M>("causal", &M::causal, "no token attends to later ones; false: BERT"),
      key::whole<M>("token_types", &M::token_types, {0, 1'000'000},
                    "rows of a table of token types (BERT)"),
      key::flag<M>("head_transform", &M::head_transform,
                   "product, activation and norm before the logits, which have a bias "
                   "(BERT)"),
      key::flag<M>("pooler", &M::pooler, "a product over the first token (BERT)"),
      key::flag<M>("embedding_norm", &M::embedding_norm,
                   "a normalisation after the embedding (BLOOM)"),
      key::flag<M>("parallel_block", &M::parallel_block,
                   "attention and MLP in parallel on one input (GPT-NeoX)"));
}

constexpr std::array<ModelNumber, 8> numbers{
    {{"activation_clamp", &M::activation_clamp, 0,
      "both halves of a gated activation are cut at it (gpt-oss); 0: none; for exports"},
     {"glu_offset", &M::glu_offset, 0, "added to a gated activation's other half; for exports"},
     {"attention_softcap", &M::attention_softcap, 0,
      "c tanh(x / c) of scores; 0: none; for exports"},
     {"logits_softcap", &M::logits_softcap, 0, "c tanh(x / c) of logits; 0: none; for exports"},
     {"embedding_multiplier", &M::embedding_multiplier, 1, "Granite's; for exports"},
     {"residual_multiplier", &M::residual_multiplier, 1, "Granite's; for exports"},
     {"attention_multiplier", &M::attention_multiplier, 0,
      "Granite's, of scores; 0: 1 / sqrt(head_dim); for exports"},
     {"logits_scaling", &M::logits_scaling, 1, "Granite's, which divides logits; for exports"}}};

void add_numbers(Table& table) {
  for (const ModelNumber& n : numbers) add(table, P::block, for_exports(n.name, n.field, n.help));
}

void add_mixtures(Table& table) {
  add(table, P::experts,
      key::required(key::whole<M>("experts", &M::experts, layer_counts, "of a layer, routed")),
      key::required(key::whole<M>("top_k", &M::top_k, layer_counts, "experts of a token")),
      key::whole<M>("expert_ffn_hidden", &M::expert_ffn_hidden, ffn_widths,
                    "inner size of an expert; absent: ffn_hidden"),
      key::whole<M>("shared_experts", &M::shared_experts, {0, layer_counts.most},
                    "that every token uses, each as wide as an expert"),
      key::flag<M>("shared_expert_gate", &M::shared_expert_gate,
                   "the shared experts' result times a sigmoid (Qwen3-Next)"),
      key::flag<M>("expert_norms", &M::expert_norms,
                   "norms for router, routed experts and both results (Gemma 4)"),
      key::whole<M>("moe_latent_size", &M::moe_latent_size, {0, widths.most},
                    "of the vectors that routed experts work on (Nemotron 3); 0: hidden"));
  add(table, P::expert_layers,
      count_to(
          "first_dense_layers", &M::first_dense_layers, 0, "0 to layers",
          [](const M& m) { return m.layers; }, "the first layers have no experts"),
      key::whole<M>("moe_every", &M::moe_every, layer_counts,
                    "of the others, one layer in so many has experts"),
      count_to(
          "moe_offset", &M::moe_offset, 0, "0 to layers", [](const M& m) { return m.layers; },
          "the first layer of moe_every's that has (Llama 4 Maverick: 1)"));
  add(table, P::router,
      key::word<M>("router_score", &M::router_score, router_score_names,
                   "how scores become weights of experts"),
      key::flag<M>("router_bias", &M::router_bias,
                   "a bias for each expert, in place of a loss that balances them"),
      key::number<M>("router_scaling", &M::router_scaling, 1e-6, 1e6, "factor on the weights"),
      count_to(
          "expert_groups", &M::expert_groups, 1, "1 to experts",
          [](const M& m) { return m.experts; }, "of group-limited routing; absent: none"),
      usually(count_to(
                  "expert_groups_per_token", &M::expert_groups_per_token, 1, "1 to expert_groups",
                  [](const M& m) { return std::max<std::int64_t>(1, m.expert_groups); },
                  "in which a token chooses its experts; absent: all"),
              &M::expert_groups_per_token, [](const M& m) { return m.expert_groups; }),
      key::whole<M>("mtp_layers", &M::mtp_layers, {0, 100},
                    "further layers of multi-token prediction, on the last stage"));
}

void add_latent_attention(Table& table) {
  add(table, P::latent_rank,
      key::whole<M>("kv_lora_rank", &M::kv_lora_rank, small_widths,
                    "latent attention's of keys and values; absent: none"));
  add(table, P::latent_sizes,
      size_or_none("q_lora_rank", &M::q_lora_rank,
                   "latent attention's of queries; 0: projected directly"),
      assumed_size("qk_head_dim", &M::qk_head_dim, 128,
                   "of latent attention's queries and keys without the rotary part; absent: 128"),
      assumed_size("qk_pos_emb_head_dim", &M::qk_pos_emb_head_dim, 64,
                   "the rotary part; absent: 64"));
  add(table, P::value_size,
      key::whole<M>("v_head_dim", &M::v_head_dim, small_widths,
                    "of values; absent: head_dim, latent attention: 128"));
  add(table, P::indexer,
      key::required(key::whole<M>("index_heads", &M::index_heads, layer_counts,
                                  "of sparse attention's indexer (DeepSeek-V3.2)")),
      assumed_size("index_head_dim", &M::index_head_dim, 128, "of the indexer; absent: 128"),
      assumed_size("index_topk", &M::index_topk, 2048,
                   "keys that a query attends to, of the indexer's choice; absent: 2048"));
}

void add_windows(Table& table) {
  static const std::string pattern_help =
      fmt::format("a letter a layer, repeated: {}; absent: full attention, or the window",
                  attention_letters_help());
  add(table, P::window,
      key::whole<M>("sliding_window", &M::sliding_window, {0, 1'000'000'000},
                    "tokens that a query attends to, itself the last; 0: all before it"),
      key::text<M>("attention_pattern", &M::attention_pattern, pattern_help),
      key::whole<M>("attention_chunk", &M::attention_chunk, {0, 1'000'000'000},
                    "tokens of a chunk, to which attention is confined (Llama 4); 0: none"));
  add(table, P::windowed,
      size_or_none("window_heads", &M::window_heads,
                   "heads of layers with a window (Step 3.5); 0: as the others"),
      size_or_none("window_kv_heads", &M::window_kv_heads,
                   "kv_heads of layers with a window (MiMo-V2); 0: as the others"),
      size_or_none("window_head_dim", &M::window_head_dim,
                   "head_dim of layers with a window (Gemma 4); 0: as the others"),
      key::flag<M>("window_sinks", &M::window_sinks,
                   "sinks in layers with a window alone (MiMo-V2)"),
      key::flag<M>("keys_as_values", &M::keys_as_values,
                   "layers without a window have no product for values: the keys' is used "
                   "(Gemma 4)"));
}

void add_recurrences(Table& table) {
  add(table, P::delta_net,
      key::required(key::whole<M>("linear_num_key_heads", &M::linear_num_key_heads, layer_counts,
                                  "of a gated delta net, of queries and of keys")),
      key::required(key::whole<M>("linear_num_value_heads", &M::linear_num_value_heads,
                                  layer_counts, "of a gated delta net")),
      assumed_size("linear_key_head_dim", &M::linear_key_head_dim, 128,
                   "of a gated delta net; absent: 128"),
      assumed_size("linear_value_head_dim", &M::linear_value_head_dim, 128,
                   "of a gated delta net; absent: 128"));
  add(table, P::state,
      usually(key::whole<M>("state_size", &M::state_size, small_widths, "N of a scan; absent: 128"),
              &M::state_size, [](const M&) { return 128; }));
  add(table, P::scan,
      usually(key::whole<M>("ssm_groups", &M::ssm_groups, small_widths,
                            "groups of a scan's heads that share B and C; absent: 1"),
              &M::ssm_groups, [](const M&) { return 1; }),
      size_or_none("dt_rank", &M::dt_rank, "Mamba-1's, of the time step; 0: Mamba-2"),
      key::flag<M>("scan_norms", &M::scan_norms, "of Mamba-1's time step, B and C (Jamba)"),
      key::flag<M>("scan_output_norm", &M::scan_output_norm,
                   "of Mamba-2's gated result; false: Falcon-H1"));
  add(table, P::rwkv, rank("rwkv_decay_rank", &M::rwkv_decay_rank, "decay"),
      rank("rwkv_rate_rank", &M::rwkv_rate_rank, "in-context learning rate"),
      rank("rwkv_value_rank", &M::rwkv_value_rank, "value residual"),
      rank("rwkv_gate_rank", &M::rwkv_gate_rank, "gate"));
  add(table, P::convolution,
      usually(
          key::whole<M>("conv_kernel", &M::conv_kernel, small_widths,
                        "taps of a convolution, its own or of a scan or a delta net; absent: 4"),
          &M::conv_kernel, [](const M&) { return 4; }));
}

void add_stacks_and_remarks(Table& table) {
  static const std::string pattern_help =
      "of a hybrid, a letter a layer: " + pattern_letters_help();
  add(table, P::pattern,
      key::required(key::text<M>("layer_pattern", &M::layer_pattern, pattern_help)));
  add(table, P::pattern_scan,
      usually(key::whole<M>("mamba_head_dim", &M::mamba_head_dim, small_widths,
                            "channels of a hybrid's scan head; absent: 64"),
              &M::mamba_head_dim, [](const M&) { return 64; }),
      assumed(key::whole<M>("mamba_heads", &M::mamba_heads, layer_counts,
                            "heads of a hybrid's scans; absent: 2h / mamba_head_dim"),
              &M::mamba_heads, [](const M& m) {
                return std::max<std::int64_t>(1, 2 * m.hidden / m.mamba_head_dim);
              }));
  add(table, P::stacks,
      key::whole<M>("encoder_layers", &M::encoder_layers, layer_counts,
                    "of t5; absent: as deep as the other"),
      key::whole<M>("decoder_layers", &M::decoder_layers, layer_counts,
                    "of t5; absent: as deep as the other"),
      key::whole<M>("decoder_heads", &M::decoder_heads, layer_counts,
                    "of t5's decoder; absent: heads"),
      key::whole<M>("decoder_ffn_hidden", &M::decoder_ffn_hidden, ffn_widths,
                    "of t5's decoder; absent: ffn_hidden"));
  add(table, P::last,
      assumed(key::number<M>("dropout", &M::dropout, 0, 0.99,
                             "of embedding, attention and hidden states"),
              &M::dropout, [](const M& m) { return is_llama(m) || is_nemotron(m) ? 0 : 0.1; }),
      key::tokens<M>("context_length", &M::context_length, {0, 1'000'000'000},
                     "tokens that it takes, prompt and answer (max_position_embeddings); serving; "
                     "0: not known"),
      key::word<M>("checkpoint", &M::checkpoint, checkpoint_names,
                   "format of the published weights, which serving.weights follows"),
      key::flag<M>("unquantized_attention", &M::unquantized_attention,
                   "narrow published weights keep attention's products in 16 bits"),
      key::flag<M>("unquantized_dense", &M::unquantized_dense,
                   "and all products but those of routed experts"),
      count_to(
          "unquantized_layers", &M::unquantized_layers, 0, "0 to layers",
          [](const M& m) { return m.layers; }, "and so many of the first and of the last layers"),
      key::number<M>("published_parameters", &M::published_parameters, 1, 1e18,
                     "what the source says, to compare"),
      key::remark<M>("published_note", "for people"),
      key::text<M>("source", &M::source, "where it is published"),
      key::text<M>("title", &M::title, "for people"));
}

// Maps of keys of their own, which tower_reader.hpp reads.
void add_towers(Table& table) {
  for (std::size_t i = 0; i < tower_names.size(); ++i) {
    const auto input = static_cast<TowerInput>(i);
    Key<M> row = key::special<M>(
        tower_names[i], key::fixed_text("a map, with the keys of a model for its layers"),
        input == TowerInput::vision ? "a tower of encoder layers that reads images"
                                    : "... that reads sound",
        [](MapReader&, M&) {});
    row.parts = [input] { return tower_keys(input); };
    add(table, P::towers, std::move(row));
  }
}

const Table& table() {
  static const Table all = [] {
    Table rows;
    add_sizes(rows);
    add_choices(rows);
    add_block(rows);
    add_numbers(rows);
    add_mixtures(rows);
    add_latent_attention(rows);
    add_windows(rows);
    add_recurrences(rows);
    add_towers(rows);
    add_stacks_and_remarks(rows);
    return rows;
  }();
  return all;
}

}  // namespace

void read_part(MapReader& reader, ModelPart part, M& model) {
  for (const auto& [of, row] : table()) {
    if (of != part) continue;
    if (row.required) reader.required(row.name);
    row.read(reader, model);
  }
}

void assume(std::int64_t M::*size, std::int64_t usual, std::string_view key, M& model) {
  if (model.*size > 0) return;
  model.*size = usual;
  model.assumed.push_back(fmt::format("{} {}", key, usual));
}

std::int64_t usual_ffn(const M& m) {
  // Touvron et al. 2023: two thirds of 4h, rounded up to 256.
  const bool llama = is_llama(m) && !is_hybrid(m);
  return llama ? ceil_div(8 * m.hidden, 768) * 256 : 4 * m.hidden;
}

std::int64_t usual_vocab(const M& m) {
  constexpr std::int64_t t5_vocab = 32'128;  // transformers, T5Config
  return is_mamba(m) ? 50'288 : is_llama(m) ? 32'000 : is_t5(m) ? t5_vocab : 50'257;
}

std::span<const ModelNumber> model_numbers() { return numbers; }

bool is_model_key(std::string_view name) { return std::ranges::count(model_key_names(), name) > 0; }

const std::vector<std::string_view>& model_key_names() {
  static const auto names = [] {
    std::vector<std::string_view> all;
    for (const auto& [part, row] : table()) all.push_back(row.name);
    return all;
  }();
  return names;
}

std::vector<KeyText> model_keys() {
  Keys<M> all;
  for (const auto& [part, row] : table()) all.push_back(row);
  return described(all, "model.");
}

}  // namespace costmodel
