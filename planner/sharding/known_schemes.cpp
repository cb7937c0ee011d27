#include "planner/sharding/known_schemes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace planner {

using namespace costmodel;

namespace {

// How an axis splits a part of a layer: its first product, its core and its last product.
enum class Scheme { replicated, batch, tensor, sequence, ulysses, ring, expert, other };

Scheme scheme_of(Split first, Split core, Split last) {
  const bool inner = last == Split::inner || last == Split::inner_scattered;
  if (first == Split::whole && last == Split::whole) return Scheme::replicated;
  if (first == Split::experts && last == Split::experts) return Scheme::expert;
  if (first == Split::rows && last == Split::rows) {
    if (core == Split::channels) return Scheme::ulysses;
    return core == Split::ring ? Scheme::ring : Scheme::batch;
  }
  if (first == Split::gathered_columns && inner) return Scheme::sequence;
  if (first == Split::columns && inner)
    return last == Split::inner ? Scheme::tensor : Scheme::sequence;
  return Scheme::other;
}

std::string words(Scheme scheme, int axis) {
  switch (scheme) {
    case Scheme::replicated: return fmt::format("the same on all devices of axis {}", axis);
    case Scheme::batch: return fmt::format("batch over axis {} = data parallelism", axis);
    case Scheme::tensor:
      return fmt::format("column then row over axis {} = Megatron tensor parallelism", axis);
    case Scheme::sequence:
      return fmt::format(
          "column then row over axis {}, tokens between = Megatron tensor parallelism with "
          "sequence parallelism",
          axis);
    case Scheme::ulysses:
      return fmt::format(
          "tokens over axis {}, in attention heads, all-to-all between = DeepSpeed-Ulysses", axis);
    case Scheme::ring:
      return fmt::format(
          "tokens over axis {}, keys and values around a ring = ring attention (context "
          "parallelism)",
          axis);
    case Scheme::expert: return fmt::format("experts over axis {} = expert parallelism", axis);
    case Scheme::other: break;
  }
  return {};
}

// A part of a layer: the operators whose splits identify the scheme.
struct Part {
  std::string name;
  const OperatorStrategy* first = nullptr;
  const OperatorStrategy* core = nullptr;
  const OperatorStrategy* last = nullptr;
};

class Parts {
 public:
  Parts(const StageGraph& graph, const AlikeLayers& alike, const std::vector<int>& choice) {
    for (const std::size_t v : alike.nodes) {
      const OperatorSite& site = graph.site(v);
      const OperatorStrategy* s = &graph.strategy(v, choice);
      switch (site.node.site) {
        case Site::qkv:
        case Site::q:
        case Site::kv: begin("attention", s); break;
        case Site::scan_in: begin("scan", s); break;
        case Site::mlp_up:
        case Site::mlp_gate_and_up: begin("MLP", s); break;
        case Site::expert_up:
        case Site::expert_gate_and_up: begin("experts", s); break;
        case Site::token_embedding: whole("embedding", s); break;
        case Site::logits: whole("logits", s); break;
        case Site::flash_attention:
        case Site::attention_scores: core(s); break;
        case Site::attention_projection:
        case Site::mlp_down:
        case Site::scan_out:
        case Site::expert_down: last(s); break;
        default: break;
      }
    }
    std::erase_if(parts_, [](const Part& p) { return p.last == nullptr; });
  }
  const std::vector<Part>& all() const { return parts_; }

 private:
  void begin(const std::string& name, const OperatorStrategy* s) {
    if (parts_.empty() || parts_.back().name != name) parts_.push_back({name});
    parts_.back().first = s;  // the last projection in is cut by heads
  }
  void core(const OperatorStrategy* s) {
    if (!parts_.empty()) parts_.back().core = s;
  }
  void last(const OperatorStrategy* s) {
    if (!parts_.empty()) parts_.back().last = s;
  }
  void whole(const std::string& name, const OperatorStrategy* s) {
    parts_.push_back({name, s, nullptr, s});
  }
  std::vector<Part> parts_;
};

std::string listed(const Part& part, std::size_t axis) {
  const auto name = [axis](const OperatorStrategy* s) {
    return split_names[static_cast<std::size_t>(s->split[axis])];
  };
  const std::string_view first = name(part.first), last = name(part.last);
  const bool table = part.name == "embedding" && first == "inner";
  if (table) return fmt::format("vocabulary over axis {}", axis);
  if (part.first == part.last) return fmt::format("{} over axis {}", first, axis);
  return fmt::format("{}, then {} over axis {}", first, last, axis);
}

// "a", "a and b", "a, b and c".
std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

// Sentences in the order in which they first apply, each with the parts it applies to.
class Sentences {
 public:
  void add(const std::string& what, const std::string& part) {
    const auto found = std::ranges::find_if(all_, [&](const auto& s) { return s.first == what; });
    if (found == all_.end()) {
      all_.push_back({what, {part}});
    } else if (found->second.back() != part) {
      found->second.push_back(part);
    }
  }
  std::vector<std::string> take() const {
    std::vector<std::string> lines;
    for (const auto& [what, parts] : all_) lines.push_back(joined(parts) + ": " + what);
    return lines;
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> all_;
};

constexpr std::array<std::string_view, 4> zero_words{
    "", "optimizer states sharded", "gradients and optimizer states sharded", "weights sharded"};

std::string sharded_over(const OperatorStrategy& s, const DeviceMesh& mesh) {
  std::string axes;
  for (const int a : {0, 1}) {
    if (mesh.size(a) == 1 || s.split[static_cast<std::size_t>(a)] != Split::rows) continue;
    axes += axes.empty() ? fmt::format("axis {}", a) : fmt::format(" and axis {}", a);
  }
  return fmt::format("{} over {} = ZeRO-{}", zero_words[static_cast<std::size_t>(s.zero)], axes,
                     s.zero);
}

}  // namespace

std::vector<std::string> known_names(const StageGraph& graph, const AlikeLayers& alike,
                                     const std::vector<int>& choice) {
  const DeviceMesh& mesh = graph.spec.mesh;
  const Parts parts(graph, alike, choice);
  Sentences sentences;
  for (const std::size_t a : {std::size_t{1}, std::size_t{0}}) {
    if (mesh.size(static_cast<int>(a)) == 1) continue;
    for (const Part& part : parts.all()) {
      const Split core = part.core != nullptr ? part.core->split[a] : Split::whole;
      const Scheme scheme = scheme_of(part.first->split[a], core, part.last->split[a]);
      sentences.add(scheme == Scheme::other ? listed(part, a) : words(scheme, static_cast<int>(a)),
                    part.name);
    }
  }
  for (const Part& part : parts.all()) {
    for (const auto* s : {part.first, part.last}) {
      if (s->zero > 0) sentences.add(sharded_over(*s, mesh), part.name);
    }
  }
  if (mesh.devices() == 1) sentences.add("on one device", "all");
  return sentences.take();
}

}  // namespace planner
