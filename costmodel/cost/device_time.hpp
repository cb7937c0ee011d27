// Time of one pass of an operator on a device: a roofline with a shape-dependent roof.
//
// Matrix products take max(FLOPs / (peak · efficiency · q · k/(k + half_k)), bytes / bandwidth). q
// is the fraction of the device that a tiling fills: the result is split into tiles, the tiles into
// waves of one per multiprocessor, and the last wave may be partly empty (NVIDIA, "Matrix
// Multiplication Background User's Guide", tile and wave quantisation). The best of four tile
// shapes is used, as the libraries' heuristics do. Other kernels are memory-bound: (bytes + half) /
// bandwidth.
#pragma once

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/op.hpp"

namespace costmodel {

// Time of a product batch x [m, k] · [k, n] in `precision`.
Seconds product_time(double batch, double m, double n, double k, const DeviceSpec& device,
                     Precision precision);

// The fraction of the device (0 to 1) that the best tiling of `batch` m x n results fills.
double tile_fill(double batch, double m, double n, int multiprocessors);

// Whether a table of the device gives the time of an attention kernel, so that no factor of a
// framework applies.
bool is_tabled(const Op& op, Pass pass, const DeviceSpec& device, Precision precision);

// Time of a chain of memory-bound kernels.
Seconds streaming_time(Bytes moved, int kernels, const DeviceSpec& device);

// Time to make the operands of an operator's weights that are kept in `precision`, once an
// iteration, a kernel for each matrix; 0 for a product with wider operands, and in 16 bits and
// more.
Seconds weight_cast_time(const Op& op, const DeviceSpec& device, Precision precision);

// Device time of a pass, from the device's measured table if it has one, without launch time. 0 for
// collectives, which the network prices.
Seconds device_time(const Op& op, Pass pass, const DeviceSpec& device, Precision precision);

}  // namespace costmodel
