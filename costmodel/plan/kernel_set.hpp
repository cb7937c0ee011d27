// What a framework's version launches for an operator between the products: how many kernels, what
// each reads and writes, and at which rate. configs/kernels holds a file for each implementation,
// with sources; a stack names those it uses, and prices what a file leaves out by its own formulas
// (costmodel/operators, work_of).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "costmodel/base/units.hpp"

namespace costmodel {

// The elements of an operator are those of its result (rows x columns), of a loss its logits, of
// experts' sorting the routed rows, of a product its input. `source` elements are what some read
// besides: the table of an embedding, the rows before they are routed, the weight of a product, the
// input of an adapter, the own shard of sharded parameters.
enum class KernelOp {
  layernorm,
  rmsnorm,
  head_norm,  // of queries and keys
  residual,
  dropout,
  activation,
  gated_activation,
  rotary,
  repeat_kv,  // keys and values copied to each query head; elements of the copies
  softmax,
  embedding,
  cross_entropy,  // unfused; of another loss kernel the op list's own passes
  compiled_cross_entropy,
  routing,
  permute,     // to the experts' order
  unpermute,   // back, summed
  adapter,     // what is added for one, besides its two products
  linear,      // casts of a product's operands
  after_norm,  // the same of a norm's result; elements: of each product that takes it by itself
  shards,      // copies of a gather and of a reduce-scatter of sharded parameters
  unreduced,   // gradients copied in place of a reduction, by the one rank of a group
  accumulate,  // of the gradients of a further micro-batch, where no product does it
  optimizer,   // with what clips gradients, once an iteration; elements are own parameters
};
inline constexpr std::array<std::string_view, 23> kernel_op_names{"layernorm",
                                                                  "rmsnorm",
                                                                  "head norm",
                                                                  "residual",
                                                                  "dropout",
                                                                  "activation",
                                                                  "gated activation",
                                                                  "rotary",
                                                                  "repeat keys and values",
                                                                  "softmax",
                                                                  "embedding",
                                                                  "cross-entropy",
                                                                  "compiled cross-entropy",
                                                                  "routing",
                                                                  "permute",
                                                                  "unpermute",
                                                                  "adapter",
                                                                  "linear",
                                                                  "linear after norm",
                                                                  "shards",
                                                                  "unreduced gradients",
                                                                  "accumulate",
                                                                  "optimizer"};

// One pass: so many bytes an element in the width of activations (`narrow` times it) and in fp32
// (`wide` times 4 bytes), by `kernels` kernels, at `rate` of the memory's bandwidth.
struct KernelPass {
  double narrow = 0, wide = 0;
  double source_narrow = 0, source_wide = 0;
  int kernels = 1;
  double rate = 0.8;
  // Part of the time on an H100 that a faster memory does not shorten: what multiprocessors take.
  double cores = 0;
  double long_rows = 1;  // times as long where a norm's rows have more than 4,096 elements
  // Parts of the time in kernels of these kinds; of source elements, in copies.
  double copies = 0, indexing = 0, source_copies = 0;
  double source_rate = 0;  // of source elements; 0: `rate`
  Seconds latency;  // beyond starts and bytes, whatever the elements: of the passes of a sort
  // `element`: storage bytes of an activation.
  static constexpr double h100_bandwidth = 3.352e12;  // bytes/s, data sheet
  // The time at a bandwidth, over that of the bytes at `rate` of it.
  double slowed(double bandwidth) const {
    return bandwidth > h100_bandwidth ? 1 + cores * (bandwidth / h100_bandwidth - 1) : 1;
  }
  double own_bytes(double elements, double element) const {
    return elements * (narrow * element + wide * 4);
  }
  double source_bytes(double source, double element) const {
    return source * (source_narrow * element + source_wide * 4);
  }
  double bytes(double elements, double source, double element) const {
    return own_bytes(elements, element) + source_bytes(source, element);
  }
};

// What autograd keeps of an operator's own making until backward, bytes an element as above: of a
// norm in place of its input, of a product after a norm and of an adapter a copy of the input for
// each of them, of others in addition to their inputs.
struct KernelKeeps {
  double narrow = 0, wide = 0;
  double bytes(double element) const { return narrow * element + wide * 4; }
};

struct KernelSet {
  std::string name;
  struct Passes {
    std::optional<KernelPass> forward, backward;
    std::optional<KernelKeeps> keeps;
  };
  std::array<Passes, kernel_op_names.size()> passes;
  bool empty() const { return name.empty(); }
  // Null where the file leaves it out.
  const KernelPass* find(KernelOp op, bool forward) const {
    const Passes& of = passes[static_cast<std::size_t>(op)];
    const auto& pass = forward ? of.forward : of.backward;
    return pass ? &*pass : nullptr;
  }
  // Bytes that it keeps of an element; none: by the op list.
  std::optional<double> keeps(KernelOp op, double element) const {
    const auto& own = passes[static_cast<std::size_t>(op)].keeps;
    return own ? std::optional(own->bytes(element)) : std::nullopt;
  }
};

}  // namespace costmodel
