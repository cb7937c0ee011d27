// How long one pass of an operator runs on a device: a roofline whose roof depends on the shape.
//
// Matrix products: max(FLOPs / (peak · efficiency · q · k/(k + half_k)), bytes / bandwidth), where
// q is the share of the device a tiling fills: products are cut into tiles, tiles into waves of one
// a multiprocessor, the last wave may be partly empty (NVIDIA, "Matrix Multiplication Background
// User's Guide", tile and wave quantisation); the best of four tile shapes is taken, as the
// libraries' heuristics do. Other kernels move bytes: (bytes + half) / bandwidth.
#pragma once

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/operators/op.hpp"

namespace costmodel {

// One product batch x [m, k] · [k, n] in `precision`.
Seconds product_time(double batch, double m, double n, double k, const DeviceSpec& device,
                     Precision precision);

// The share of the device that the best tiling of an m x n result (batch times) fills, 0 to 1.
double tile_fill(double batch, double m, double n, int multiprocessors);

// A chain of kernels that move bytes.
Seconds streaming_time(Bytes moved, int kernels, const DeviceSpec& device);

// Device time of a pass, as measured on the device where it has a table for it, launches not
// counted. Collectives take none here: the network prices them.
Seconds device_time(const Op& op, Pass pass, const DeviceSpec& device, Precision precision);

}  // namespace costmodel
