#include "runtime/training/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/error.hpp"
#include "costmodel/base/parallel_for.hpp"
#include "runtime/cpu/random.hpp"

namespace runtime {

namespace {

using namespace costmodel;

constexpr double usual_spread = 0.02;

// The rank's columns of a tensor that concatenates blocks of `widths` columns; each block is cut
// evenly.
std::vector<ColumnPart> cut_columns(const std::vector<std::int64_t>& widths, std::int64_t ranks,
                                    std::int64_t rank) {
  std::vector<ColumnPart> parts;
  std::int64_t local = 0, global = 0;
  for (const std::int64_t width : widths) {
    const std::int64_t own = width / ranks;
    parts.push_back({local, own, global + rank * own});
    local += own;
    global += width;
  }
  return parts;
}

const Linear& same_node(const OpList& whole, Site site) {
  const auto found = std::ranges::find(whole.nodes, site, &Node::site);
  SHARDPLAN_CHECK(found != whole.nodes.end());
  return std::get<Linear>(found->op);
}

class Builder {
 public:
  Builder(const OpList& list, const OpList& whole, const ModelSpec& model, const LayerPlace& place,
          bool sequence_parallel)
      : list_(list),
        whole_(whole),
        model_(model),
        place_(place),
        sequence_parallel_(sequence_parallel) {}

  LayerParameters build() {
    layer_.nodes.resize(list_.nodes.size());
    layer_.borrows_table = place_.borrows_table;
    for (std::size_t i = 0; i < list_.nodes.size(); ++i) {
      const Node& node = list_.nodes[i];
      std::visit(
          Visitor{[&](const Linear& o) { linear(node, o, layer_.nodes[i]); },
                  [&](const Norm& o) { norm(node, o, layer_.nodes[i]); },
                  [&](const Embedding& o) { layer_.nodes[i].matrix = table(o.vocab, o.cols); },
                  [&](const PositionEmbedding& o) {
                    layer_.nodes[i].matrix =
                        add(name_of(node, "table"), o.positions, o.cols, Initial::normal);
                    layer_.tensors.back().partial = sequence_parallel_;
                  },
                  [](const auto&) {}},
          node.op);
    }
    return std::move(layer_);
  }

 private:
  std::string name_of(const Node& node, std::string_view part) const {
    return place_.kind == LayerKind::block
               ? fmt::format("layer {} {} {}", place_.number, node.name(), part)
               : fmt::format("{} {}", node.name(), part);
  }

  int add(std::string name, std::int64_t rows, std::int64_t cols, Initial initial) {
    Parameter p;
    p.name = std::move(name);
    p.rows = rows;
    p.cols = cols;
    p.global_cols = cols;
    p.columns = {{0, cols, 0}};
    p.initial = initial;
    p.spread = usual_spread;
    p.offset = layer_.size;
    layer_.size += p.size();
    layer_.tensors.push_back(std::move(p));
    return static_cast<int>(layer_.tensors.size()) - 1;
  }

  // The token table, and the output projection, which starts equal when they are tied.
  int table(std::int64_t rows, std::int64_t cols, bool output = false) {
    const bool own = output && !model_.tie_embeddings;
    const int at =
        add(own ? "output projection" : "token embedding table", rows, cols, Initial::normal);
    layer_.tensors.back().token_table = !own;
    layer_.tensors.back().first_row = place_.tp_rank * rows;
    return at;
  }

  // Columns of a product's result: queries, keys and values, or gate and up, are sharded
  // separately.
  std::vector<std::int64_t> widths_of(const Node& node, std::int64_t n) const {
    if (node.site == Site::qkv) return {model_.query_size(), model_.kv_size(), model_.kv_size()};
    if (node.site == Site::mlp_gate_and_up) return {n / 2, n / 2};
    return {n};
  }

  void linear(const Node& node, const Linear& o, NodeParameters& own) {
    if (node.site == Site::logits) {
      if (!place_.borrows_table) own.matrix = table(o.n, o.k, true);
      return;
    }
    const Linear& whole = same_node(whole_, node.site);
    const std::int64_t ranks = whole.n / o.n;
    own.matrix = add(name_of(node, "weight"), o.k, o.n, Initial::normal);
    Parameter& w = layer_.tensors.back();
    w.global_cols = whole.n;
    w.columns = cut_columns(widths_of(node, whole.n), ranks, ranks > 1 ? place_.tp_rank : 0);
    if (o.k < whole.k) w.first_row = place_.tp_rank * o.k;
    const bool before_residual =
        node.site == Site::attention_projection || node.site == Site::mlp_down;
    if (before_residual) w.spread /= std::sqrt(2.0 * static_cast<double>(model_.layers));
    if (!o.bias) return;
    const auto columns = w.columns;
    own.bias = add(name_of(node, "bias"), 1, o.n, Initial::zeros);
    layer_.tensors.back().columns = columns;
    layer_.tensors.back().global_cols = whole.n;
    layer_.tensors.back().partial = sequence_parallel_ && before_residual;
  }

  void norm(const Node& node, const Norm& o, NodeParameters& own) {
    // Norms of queries and keys see only the rank's heads, the other norms only its tokens.
    const bool partial = o.gains > 1 || sequence_parallel_;
    own.matrix = add(name_of(node, "gain"), o.gains, o.cols, Initial::ones);
    layer_.tensors.back().partial = partial;
    if (o.kind != Normalization::layernorm) return;
    own.bias = add(name_of(node, "shift"), o.gains, o.cols, Initial::zeros);
    layer_.tensors.back().partial = partial;
  }

  const OpList& list_;
  const OpList& whole_;
  const ModelSpec& model_;
  const LayerPlace& place_;
  bool sequence_parallel_;
  LayerParameters layer_;
};

// The random stream of a tensor: FNV-1a of its name, by which a tensor is known in every plan.
std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

// Some rows of a tensor, which one thread writes.
struct Rows {
  const Parameter* tensor;
  std::int64_t first, end;
};

std::vector<Rows> pieces_of(const LayerParameters& layer) {
  constexpr std::int64_t elements = 1 << 16;  // about a millisecond of one core
  std::vector<Rows> pieces;
  for (const Parameter& p : layer.tensors) {
    const std::int64_t rows = std::max<std::int64_t>(1, elements / p.cols);
    for (std::int64_t first = 0; first < p.rows; first += rows)
      pieces.push_back({&p, first, std::min(first + rows, p.rows)});
  }
  return pieces;
}

// `values` are the layer's.
void initialise(const Rows& rows, std::uint64_t seed, std::span<float> values) {
  const Parameter& p = *rows.tensor;
  const auto at = [&](std::int64_t row, std::int64_t column, std::int64_t count) {
    return values.subspan(p.offset + static_cast<std::size_t>(row * p.cols + column),
                          static_cast<std::size_t>(count));
  };
  const auto own = at(rows.first, 0, (rows.end - rows.first) * p.cols);
  if (p.initial != Initial::normal) {
    std::ranges::fill(own, p.initial == Initial::ones ? 1.0F : 0.0F);
    return;
  }
  const std::uint64_t stream = stream_of(p.name);
  for (std::int64_t row = rows.first; row < rows.end; ++row) {
    const std::int64_t start = (p.first_row + row) * p.global_cols;
    for (const ColumnPart& part : p.columns) {
      cpu::normals(seed, stream, static_cast<std::uint64_t>(start + part.global),
                   at(row, part.local, part.count));
    }
  }
  for (float& value : own) value = static_cast<float>(p.spread * value);
}

}  // namespace

LayerParameters layer_parameters(const OpList& list, const OpList& whole, const ModelSpec& model,
                                 const LayerPlace& place, bool sequence_parallel) {
  return Builder(list, whole, model, place, sequence_parallel).build();
}

void initialise(const LayerParameters& layer, std::uint64_t seed, std::span<float> values,
                int threads) {
  SHARDPLAN_CHECK(values.size() == layer.size);
  const auto pieces = pieces_of(layer);
  share_out(pieces.size(), threads, [&](std::size_t i) { initialise(pieces[i], seed, values); });
}

}  // namespace runtime
