#include "planner/sharding/local_op.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Divides `value` if there is no remainder.
bool divide(std::int64_t& value, std::int64_t n) {
  if (value % n != 0) return false;
  value /= n;
  return true;
}

bool is_inner(Split s) { return s == Split::inner || s == Split::inner_scattered; }
bool is_columns(Split s) { return s == Split::columns || s == Split::gathered_columns; }

struct Cutter {
  LocalOp& local;
  Split split;
  int n;

  bool rows(std::int64_t& tokens) const { return split == Split::rows && divide(tokens, n); }
  // Complete sequences, or heads.
  bool sequences() const { return split == Split::rows && divide(local.sequences, n); }
  bool heads() const { return split == Split::channels && divide(local.heads, n); }
  bool rows_or_channels(std::int64_t& tokens, std::int64_t& columns) const {
    return rows(tokens) || (split == Split::channels && divide(columns, n));
  }
  // Each rank has its part of the queries of every sequence, and meets all keys block by block.
  bool ring(FlashAttention& o) const {
    if (o.cross || o.blocks > 1) return false;
    o.keys = o.s;
    o.blocks = n;
    return divide(o.s, n);
  }
  // Rows of the attention core: (sequence, head, token), or (sequence, head).
  bool core(std::int64_t& count) const { return (sequences() || heads()) && divide(count, n); }

  bool operator()(Linear& o) const {
    if (is_columns(split)) return divide(o.n, n);
    return is_inner(split) ? divide(o.k, n) : rows(o.m);
  }
  bool operator()(GroupedLinear& o) const {
    if (split == Split::columns) return divide(o.n, n);
    if (is_inner(split)) return divide(o.k, n);
    return split == Split::experts ? divide(o.experts, n) && divide(o.m, n) : rows(o.m);
  }
  bool operator()(Convolution& o) const {
    return (sequences() && divide(o.rows, n)) || (heads() && divide(o.cols, n));
  }
  bool operator()(Scan& o) const {
    return (sequences() && divide(o.sequences, n)) ||
           (heads() && divide(o.heads, n) && divide(o.groups, n));
  }
  bool operator()(AttentionScores& o) const { return core(o.batch); }
  bool operator()(AttentionContext& o) const {
    return local.attention_core ? core(o.batch) : rows(o.batch);
  }
  bool operator()(Softmax& o) const { return core(o.rows); }
  bool operator()(FlashAttention& o) const {
    if (sequences()) return divide(o.sequences, n);
    if (split == Split::ring) return ring(o);
    // Fewer key heads than ranks: each rank has a copy.
    return heads() && divide(o.heads, n) &&
           (divide(o.kv_heads, n) || (n % o.kv_heads == 0 && (o.kv_heads = 1) == 1));
  }
  bool operator()(Dropout& o) const {
    return local.attention_core ? core(o.rows) : rows_or_channels(o.rows, o.cols);
  }
  bool operator()(Norm& o) const {
    if (rows(o.rows)) return true;
    if (split != Split::channels) return false;
    if (local.gated_norm) return divide(o.cols, n);
    return o.gains > 1 && heads() && divide(o.rows, n);  // of queries and keys, head by head
  }
  bool operator()(Activation& o) const {
    if (split == Split::experts) return local.of_experts && divide(o.rows, n);
    return rows_or_channels(o.rows, o.cols);
  }
  bool operator()(BiasDropoutAdd& o) const { return rows_or_channels(o.rows, o.cols); }
  bool operator()(Rotary& o) const { return rows(o.rows) || (heads() && divide(o.cols, n)); }
  bool operator()(Routing& o) const { return rows(o.rows); }
  bool operator()(Permute& o) const { return rows(o.rows); }
  bool operator()(Embedding& o) const {
    if (split == Split::columns) return divide(o.cols, n);
    return is_inner(split) ? divide(o.vocab, n) : rows(o.rows);
  }
  bool operator()(PositionEmbedding& o) const { return rows_or_channels(o.rows, o.cols); }
  bool operator()(CrossEntropy& o) const { return rows_or_channels(o.rows, o.cols); }
  bool operator()(Dequantise&) const { return false; }  // no frozen base comes here
  bool operator()(AdapterSum&) const { return false; }
  bool operator()(UnfusedPasses& o) const { return rows(o.rows); }
  bool operator()(Collective&) const { return false; }
};

}  // namespace

std::optional<LocalOp> cut(const LocalOp& whole, Split split, int ranks) {
  LocalOp local = whole;
  if (split == Split::whole || ranks == 1) return local;
  if (!std::visit(Cutter{local, split, ranks}, local.op)) return std::nullopt;
  return local;
}

bool has_matrix(const Op& op) {
  return std::holds_alternative<Linear>(op) || std::holds_alternative<GroupedLinear>(op) ||
         std::holds_alternative<Embedding>(op);
}

}  // namespace planner
