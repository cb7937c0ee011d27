#include "costmodel/cost/optimizer_step.hpp"

#include <algorithm>
#include <cmath>

#include "costmodel/cost/device_time.hpp"

namespace costmodel {

namespace {

constexpr double fp32 = 4;
constexpr double block = 256;             // of quantised moments, with a scale of 32 bits
constexpr double least_quantised = 4096;  // parameters of a tensor
constexpr int newton_schulz_steps = 5;

Bytes quantised(double elements) {
  if (elements < least_quantised) return Bytes(2 * fp32 * elements);
  return Bytes(2 * (elements + fp32 * std::ceil(elements / block)));
}

}  // namespace

void OptimizerShare::add(const OptimizerShare& o, double times) {
  moments += o.moments * times;
  expert_moments += o.expert_moments * times;
  products += o.products * times;
  expert_products += o.expert_products * times;
}

Bytes moments_of_matrix(double rows, double columns, Optimizer optimizer, double moment) {
  if (optimizer == Optimizer::adam8bit) return quantised(rows * columns);
  if (optimizer == Optimizer::adafactor) return Bytes(fp32 * (rows + columns));
  return Bytes(moment * moments_kept(optimizer) * rows * columns);
}

Bytes moments_of_table(double rows, double columns, Optimizer optimizer, double moment) {
  if (optimizer == Optimizer::adam8bit) return Bytes(2 * fp32 * rows * columns);
  if (optimizer == Optimizer::muon) return Bytes(2 * moment * rows * columns);
  return moments_of_matrix(rows, columns, optimizer, moment);
}

Bytes moments_of_vector(double elements, Optimizer optimizer, double moment) {
  if (optimizer == Optimizer::adam8bit) return quantised(elements);
  if (optimizer == Optimizer::adafactor) return Bytes(fp32 * elements);
  if (optimizer == Optimizer::muon) return Bytes(2 * moment * elements);
  return Bytes(moment * moments_kept(optimizer) * elements);
}

Seconds orthogonalization_time(double rows, double columns, const DeviceSpec& device) {
  const double d = std::min(rows, columns), long_side = std::max(rows, columns);
  const auto has = [&](Precision p) { return device.peak_of(p).value > 0; };
  const Precision precision = has(Precision::bf16)   ? Precision::bf16
                              : has(Precision::fp16) ? Precision::fp16
                                                     : Precision::fp32;
  const auto product = [&](double n, double k) {
    return product_time(1, d, n, k, device, precision);
  };
  return newton_schulz_steps * (product(d, long_side) + product(d, d) + product(long_side, d));
}

OptimizerShare optimizer_share(const OpList& list, LayerKind kind, bool tied,
                               const TrainingSpec& training, const DeviceSpec& device) {
  OptimizerShare share;
  const Optimizer optimizer = training.optimizer;
  if (keeps_alike(optimizer)) return share;
  const double moment = storage_bytes(training.moment_precision);
  const auto vector = [&](double elements) {
    if (elements > 0) share.moments += moments_of_vector(elements, optimizer, moment);
  };
  const auto table = [&](double rows, double columns) {
    share.moments += moments_of_table(rows, columns, optimizer, moment);
  };
  // An output projection is a matrix to 8-bit Adam, unless it is the embedding.
  const auto output = [&](const Linear& o) {
    const auto n = static_cast<double>(o.n), k = static_cast<double>(o.k);
    if (tied || optimizer == Optimizer::muon) return table(n, k);
    share.moments += moments_of_matrix(n, k, optimizer, moment);
  };
  const auto matrices = [&](double number, double n, double k, bool experts) {
    const Bytes moments = number * moments_of_matrix(n, k, optimizer, moment);
    share.moments += moments;
    if (experts) share.expert_moments += moments;
    if (optimizer != Optimizer::muon) return;
    const Seconds products = number * orthogonalization_time(n, k, device);
    share.products += products;
    if (experts) share.expert_products += products;
  };
  for (const Node& node : list.nodes) {
    if (node.frozen()) continue;
    if (const auto* o = std::get_if<Linear>(&node.op)) {
      const auto n = static_cast<double>(o->n);
      if (kind == LayerKind::head) {
        output(*o);
      } else {
        matrices(1, n, static_cast<double>(o->k), false);
      }
      if (o->bias) vector(n);
    } else if (const auto* g = std::get_if<GroupedLinear>(&node.op)) {
      const auto n = static_cast<double>(g->n), number = static_cast<double>(g->experts);
      matrices(number, n, static_cast<double>(g->k), true);
      if (!g->bias) continue;
      const Bytes biases = number * moments_of_vector(n, optimizer, moment);
      share.moments += biases;
      share.expert_moments += biases;
    } else if (const auto* e = std::get_if<Embedding>(&node.op)) {
      table(static_cast<double>(e->vocab), static_cast<double>(e->cols));
    } else if (const auto* p = std::get_if<PositionEmbedding>(&node.op)) {
      table(static_cast<double>(p->positions), static_cast<double>(p->cols));
    } else if (const auto* norm = std::get_if<Norm>(&node.op)) {  // each vector is a tensor
      const double elements = weights_of(node.op), cols = static_cast<double>(norm->cols);
      if (cols > 0) share.moments += elements / cols * moments_of_vector(cols, optimizer, moment);
    } else {  // filters, sinks and the vectors of scans
      vector(weights_of(node.op));
    }
  }
  return share;
}

}  // namespace costmodel
