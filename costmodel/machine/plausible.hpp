// What the rates, sizes and times of a machine may be. Outside of these a number is a forgotten
// unit ("450" for 450 GB/s), not a machine: both ends are well beyond what was ever built.
#pragma once

namespace costmodel::plausible {

struct Range {
  double least, most;
};

// Of a device onto a link, B/s. From 100 Mb/s Ethernet that a dozen devices share (IEEE 802.3u) to
// a hundred times NVLink 5 (0.9 TB/s one way, NVIDIA HGX B200 data sheet).
inline constexpr Range link{1e6, 1e14};

// Of a device's memory, B/s. From an eighth of one channel of PC100 memory (0.8 GB/s, JEDEC, 1998)
// to five times a wafer of SRAM (21 PB/s, Cerebras WSE-3 data sheet).
inline constexpr Range memory_rate{1e8, 1e17};

// A device's memory, bytes. From less than a processor's cache to eight times what is attached to a
// Cerebras CS-3 (1.2 PB, its data sheet).
inline constexpr Range memory{1e6, 1e16};

// FLOP/s of any precision. From a thousandth of a core of 1 GHz without vectors, which an emulator
// of processors may leave, to eighty times a wafer (125 PFLOP/s, Cerebras WSE-3 data sheet).
inline constexpr Range arithmetic{1e6, 1e19};

// One hop, s: up to the way over a geostationary satellite, 2 x 35,786 km at the speed of light
// (0.24 s).
inline constexpr Range hop{0, 0.3};

// Start of a collective, s: some hops.
inline constexpr Range collective_start{0, 1};

// Host time of a kernel, s: up to a thousand times the slowest that was measured
// (configs/clusters/jean-zay-a100.yaml: 0.12 ms, with CUDA_LAUNCH_BLOCKING).
inline constexpr Range kernel{0, 0.1};

}  // namespace costmodel::plausible
