// Messages of allocations that fail, of PyTorch of three eras.
#include "planner/logs/out_of_memory.hpp"

#include <doctest/doctest.h>

namespace out_of_memory_test {

using namespace planner;

namespace {

std::optional<OutOfMemory> of(std::initializer_list<const char*> lines) {
  std::optional<OutOfMemory> known;
  FailedIn seen = FailedIn::unknown;
  for (const char* line : lines) read_out_of_memory(line, seen, known);
  return known;
}

constexpr double mebi = 1048576, gibi = 1024 * mebi;

}  // namespace

TEST_CASE("of today, with what the process holds, in a backward pass on rank 3") {
  const auto m = of(
      {"[rank3]: Traceback (most recent call last):",
       "[rank3]:   File \"pretrain_gpt.py\", line 300, in <module>",
       "[rank3]:   File \"torch/_tensor.py\", line 525, in backward",
       "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 272.00 MiB. GPU 3 "
       "has a total capacity of 79.19 GiB of which 219.06 MiB is free. Including non-PyTorch "
       "memory, this process has 78.96 GiB memory in use. Of the allocated memory 75.25 GiB is "
       "allocated by PyTorch, and 1.50 GiB is reserved by PyTorch but unallocated."});
  REQUIRE(m);
  CHECK(m->wanted.value == doctest::Approx(272 * mebi));
  CHECK(m->capacity.value == doctest::Approx(79.19 * gibi));
  CHECK(m->free.value == doctest::Approx(219.06 * mebi));
  CHECK(m->in_use.value == doctest::Approx(78.96 * gibi));
  CHECK(m->allocated.value == doctest::Approx(75.25 * gibi));
  CHECK(m->cached.value == doctest::Approx(1.5 * gibi));
  CHECK(m->rank == 3);
  CHECK(m->where == FailedIn::backward);
  CHECK_FALSE(m->on_host);
}

TEST_CASE("of 2021, and the first message counts") {
  const auto m =
      of({"RuntimeError: CUDA out of memory. Tried to allocate 1.25 GiB (GPU 0; 15.78 "
          "GiB total capacity; 13.22 GiB already allocated; 3.94 MiB free; 14.50 GiB "
          "reserved in total by PyTorch)",
          "RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 1; 15.78 "
          "GiB total capacity; 14.00 GiB already allocated; 1.00 MiB free)"});
  REQUIRE(m);
  CHECK(m->wanted.value == doctest::Approx(1.25 * gibi));
  CHECK(m->capacity.value == doctest::Approx(15.78 * gibi));
  CHECK(m->allocated.value == doctest::Approx(13.22 * gibi));
  CHECK(m->free.value == doctest::Approx(3.94 * mebi));
  CHECK(m->cached.value == doctest::Approx(1.28 * gibi));
  CHECK(m->rank == -1);
}

TEST_CASE("of XLA, and of libraries that allocate past PyTorch") {
  const auto xla =
      of({"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory "
          "while trying to allocate 8589934592 bytes."});
  REQUIRE(xla);
  CHECK(xla->wanted.value == doctest::Approx(8 * gibi));
  for (const char* line : {"Failed to CUDA calloc async 608 bytes",
                           "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
                           "`cublasCreate(handle)`"})
    CHECK(of({line}));
}

TEST_CASE("where it failed, as far as functions name it; a host; no message") {
  const char* message =
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.0 GiB";
  CHECK(of({"  File \"torch/optim/adam.py\", line 5, in _init_group", message})->where ==
        FailedIn::step);
  CHECK(of({"  File \"x.py\", line 5, in forward", "    loss = cross_entropy(logits, labels)",
            message})
            ->where == FailedIn::loss);
  CHECK(of({message})->where == FailedIn::unknown);
  CHECK(of({"RuntimeError: DefaultCPUAllocator: can't allocate memory: 12 bytes"})->on_host);
  CHECK_FALSE(of({"out of ideas, tried to allocate time", "File \"x.py\", line 1, in step"}));
  CHECK(failed_in_text(FailedIn::backward) == "in backward");
}

}  // namespace out_of_memory_test
