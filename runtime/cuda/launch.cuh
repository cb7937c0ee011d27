// Launches the kernels of runtime/kernels on a GPU: one __global__ function per shape of kernel
// (element, row, column); a warp or a block is the team of a row.
#pragma once

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/launch_shape.hpp"
#include "runtime/kernels/portable.hpp"

namespace runtime::cuda {

using kernels::Index;
using kernels::Pair;

template <class T>
__device__ T larger_of(T a, T b) {
  return a > b ? a : b;
}

// Every lane gets the result; all combine in the same order.
template <class T, class Combine>
__device__ T across_warp(T value, Combine combine) {
  __syncwarp();
  for (int distance = warp / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, distance));
  return value;
}

class WarpTeam {
 public:
  __device__ int rank() const { return static_cast<int>(threadIdx.x) % warp; }
  __device__ int size() const { return warp; }
  template <class T>
  __device__ T sum(T value) const {
    return across_warp(value, [](T a, T b) { return a + b; });
  }
  __device__ float max(float value) const { return across_warp(value, larger_of<float>); }
};

class BlockTeam {
 public:
  // `room`: shared memory of the block, one double per warp.
  __device__ explicit BlockTeam(double* room) : room_(room) {}
  __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return static_cast<int>(blockDim.x); }
  template <class T>
  __device__ T sum(T value) const {
    return across_block(value, [](T a, T b) { return a + b; });
  }
  __device__ float max(float value) const { return across_block(value, larger_of<float>); }

 private:
  template <class T, class Combine>
  __device__ T across_block(T value, Combine combine) const {
    T* const of_warps = reinterpret_cast<T*>(room_);
    value = across_warp(value, combine);
    __syncthreads();  // the room is free again
    if (rank() % warp == 0) of_warps[rank() / warp] = value;
    __syncthreads();
    T all = of_warps[0];
    for (int i = 1; i < size() / warp; ++i) all = combine(all, of_warps[i]);
    return all;
  }
  double* room_;
};

template <class Kernel>
__global__ void __launch_bounds__(element_threads) run_elements(Index count, Kernel kernel) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    kernel(i);
}

template <class Kernel>
__global__ void __launch_bounds__(rows_of_block* warp) run_warp_rows(Index count, Kernel kernel) {
  const Index step = static_cast<Index>(gridDim.x) * rows_of_block;
  const Index first = static_cast<Index>(blockIdx.x) * rows_of_block + threadIdx.x / warp;
  for (Index row = first; row < count; row += step) kernel(WarpTeam{}, row);
}

template <class Kernel>
__global__ void __launch_bounds__(most_threads) run_block_rows(Index count, Kernel kernel) {
  __shared__ double room[warp];
  for (Index row = blockIdx.x; row < count; row += gridDim.x) kernel(BlockTeam{room}, row);
}

// Lane = column; each of the block's warps takes every sixteenth row of the block's slice of rows.
// With several slices their sums go to parts[slice, cols].
template <class Kernel>
__global__ void __launch_bounds__(column_warps* warp)
    run_columns(Index rows, Index cols, Kernel kernel, Pair* parts) {
  __shared__ Pair sums[column_warps][warp + 1];
  const Index lane = threadIdx.x % warp, own = threadIdx.x / warp;
  const Index step = static_cast<Index>(gridDim.x) * warp;
  const Index share = (rows + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * share;
  const Index end = begin + share < rows ? begin + share : rows;
  for (Index first = static_cast<Index>(blockIdx.x) * warp; first < cols; first += step) {
    const Index col = first + lane;
    Pair sum;
    for (Index row = begin + own; row < end && col < cols; row += column_warps)
      sum = sum + kernel.term(row, col);
    sums[own][lane] = sum;
    __syncthreads();
    if (own == 0 && col < cols) {
      for (int i = 1; i < column_warps; ++i) sum = sum + sums[i][lane];
      if (gridDim.y > 1)
        parts[blockIdx.y * cols + col] = sum;
      else
        kernel.add(col, sum);
    }
    __syncthreads();
  }
}

// Adds the slices' sums up in their order, so that a sum is the same each time.
template <class Kernel>
struct ColumnParts {  // count: cols
  Index cols;
  int slices;
  Kernel kernel;
  const Pair* parts;
  __device__ void operator()(Index col) const {
    Pair sum = parts[col];
    for (int i = 1; i < slices; ++i) sum = sum + parts[i * cols + col];
    kernel.add(col, sum);
  }
};

template <class Kernel>
void launch_elements(cudaStream_t stream, Index count, const Kernel& kernel) {
  if (count == 0) return;
  const LaunchShape shape = element_shape(count);
  run_elements<<<shape.blocks, shape.threads, 0, stream>>>(count, kernel);
  check(cudaGetLastError());
}

template <class Kernel>
void launch_rows(cudaStream_t stream, Index count, Index width, const Kernel& kernel) {
  if (count == 0) return;
  const LaunchShape shape = row_shape(count, width);
  if (row_is_warps(width))
    run_warp_rows<<<shape.blocks, shape.threads, 0, stream>>>(count, kernel);
  else
    run_block_rows<<<shape.blocks, shape.threads, 0, stream>>>(count, kernel);
  check(cudaGetLastError());
}

// `parts`: room for most_column_parts of them.
template <class Kernel>
void launch_columns(cudaStream_t stream, Index rows, Index cols, const Kernel& kernel,
                    Pair* parts) {
  if (cols == 0) return;
  const ColumnShape shape = column_shape(rows, cols);
  run_columns<<<dim3(shape.blocks, shape.slices), shape.threads, 0, stream>>>(rows, cols, kernel,
                                                                              parts);
  check(cudaGetLastError());
  if (shape.slices > 1)
    launch_elements(stream, cols,
                    ColumnParts<Kernel>{cols, static_cast<int>(shape.slices), kernel, parts});
}

}  // namespace runtime::cuda
