#include "costmodel/plan/kernel_set_reader.hpp"

#include "costmodel/base/escape.hpp"
#include "costmodel/config/key.hpp"

namespace costmodel {

namespace {

const Keys<KernelPass>& pass_keys() {
  using P = KernelPass;
  static const auto keys = key::rows<P>(
      key::number<P>("narrow", &P::narrow, 0, 1000,
                     "how often an element is read or written in the width of activations"),
      key::number<P>("wide", &P::wide, 0, 1000, "the same in fp32"),
      key::number<P>("source_narrow", &P::source_narrow, 0, 1000,
                     "of an embedding's table, a product's weight, an adapter's input or the own "
                     "shard, in the width of activations"),
      key::number<P>("source_wide", &P::source_wide, 0, 1000, "the same in fp32"),
      key::whole<P>("kernels", &P::kernels, {0, 1000}, "kernels launched"),
      key::required(key::number<P>("rate", &P::rate, 0.001, 2,
                                   "of the memory's bandwidth that they reach on large tensors")),
      key::number<P>("source_rate", &P::source_rate, 0.001, 2,
                     "the same for what is read or written of source elements; absent: rate"),
      key::number<P>("cores", &P::cores, 0, 1,
                     "part of the time on an H100 that a faster memory does not shorten"),
      key::number<P>("long_rows", &P::long_rows, 1, 10,
                     "times as long where rows of a norm have more than 4,096 elements"),
      key::number<P>("copies", &P::copies, 0, 1,
                     "part of the time in copies, casts and zeroes: a profile counts it as theirs"),
      key::number<P>("indexing", &P::indexing, 0, 1, "the same in sorts, gathers and scatters"),
      key::number<P>("source_copies", &P::source_copies, 0, 1,
                     "of the time that source elements take, the part in copies"),
      key::number<P>("latency_s", &P::latency, 0, 1,
                     "what small kernels take beyond a start each, whatever the elements"));
  return keys;
}

const Keys<KernelKeeps>& keeps_keys() {
  using K = KernelKeeps;
  static const auto keys = key::rows<K>(
      key::number<K>("narrow", &K::narrow, 0, 1000,
                     "elements kept for backward in the width of activations, of each of its own"),
      key::number<K>("wide", &K::wide, 0, 1000, "the same in fp32"), key::source<K>());
  return keys;
}

template <auto field, const auto& rows_of>
Key<KernelSet::Passes> part_key(std::string_view name) {
  return {name, "", key::fixed_text("a map"),
          [name](MapReader& reader, KernelSet::Passes& passes) {
            if (const Value* value = reader.optional(name))
              read_map(*value, std::string(name), rows_of(), (passes.*field).emplace());
          },
          [] { return described(rows_of(), "."); }};
}

const Keys<KernelSet::Passes>& passes_keys() {
  static const auto keys = key::rows<KernelSet::Passes>(
      part_key<&KernelSet::Passes::forward, pass_keys>("forward"),
      part_key<&KernelSet::Passes::backward, pass_keys>("backward"),
      part_key<&KernelSet::Passes::keeps, keeps_keys>("keeps"), key::source<KernelSet::Passes>());
  return keys;
}

const Keys<KernelSet>& operator_keys() {
  static const Keys<KernelSet> keys = [] {
    Keys<KernelSet> all;
    for (std::size_t i = 0; i < kernel_op_names.size(); ++i) {
      all.push_back(key::map<KernelSet>(
          kernel_op_names[i], [i](KernelSet& set) -> KernelSet::Passes& { return set.passes[i]; },
          passes_keys()));
    }
    return all;
  }();
  return keys;
}

const Keys<KernelSet>& set_keys() {
  static const auto keys =
      key::rows<KernelSet>(key::remark<KernelSet>("title", "for people"),
                           key::required(key::source<KernelSet>("sources")),
                           key::map<KernelSet>("operators", std::identity{}, operator_keys()));
  return keys;
}

}  // namespace

KernelSet read_kernel_set(const Value& map, const std::string& name) {
  KernelSet set;
  set.name = name;
  read_map(map, "kernels " + quote(name), set_keys(), set);
  return set;
}

}  // namespace costmodel
