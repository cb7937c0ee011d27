// Lines that name a fault, as NCCL, PyTorch and frameworks print them.
#include "planner/logs/log_signs.hpp"

#include <doctest/doctest.h>

#include <cctype>
#include <set>
#include <string>

namespace log_signs_test {

using namespace planner;

namespace {

std::vector<LogSign> of(std::initializer_list<const char*> lines) {
  std::vector<LogSign> signs;
  std::size_t row = 0;
  for (const char* line : lines) read_sign(line, ++row, signs);
  return signs;
}

}  // namespace

TEST_CASE("every row is in small letters, and every kind has one or follows from one") {
  std::set<SignKind> kinds;
  for (const SignRow& row : sign_rows()) {
    CAPTURE(row.words);
    for (const char c : row.words) CHECK(std::isupper(static_cast<unsigned char>(c)) == 0);
    CHECK_FALSE(row.printed_by.empty());
    kinds.insert(row.kind);
  }
  kinds.insert(SignKind::one_adapter);  // of a list of adapters with one
  CHECK(kinds.size() == sign_kind_count);
}

TEST_CASE("NCCL's transport: TCP, a fabric of one adapter, of several") {
  const auto tcp = of({"n1:12:34 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
                       "n1:12:34 [0] NCCL INFO NET/IB : No device found.",
                       "n1:12:34 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>"});
  REQUIRE(tcp.size() == 1);
  CHECK(tcp[0].kind == SignKind::net_socket);
  CHECK(tcp[0].row == 2);
  CHECK(tcp[0].count == 2);
  const auto one = of({"[0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>"});
  CHECK(sign_of(one, SignKind::one_adapter) != nullptr);
  const auto two =
      of({"[0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB e<0>"});
  CHECK(sign_of(two, SignKind::net_fabric) != nullptr);
  CHECK(sign_of(two, SignKind::one_adapter) == nullptr);
  CHECK(sign_of(of({"[0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1"}),
                SignKind::peer_off) != nullptr);
}

TEST_CASE("retries, throttling, checkpoints and fall-backs") {
  CHECK(of({"[titan] WARNING - 5 CUDA memory allocation retries."})[0].kind ==
        SignKind::allocator_retries);
  CHECK(of({"[WARNING] [stage3.py:1898:step] 2 pytorch allocator cache flushes since last step. "
            "this happens when there is high memory pressure"})[0]
            .kind == SignKind::allocator_retries);
  CHECK(of({"    SW Thermal Slowdown : Active"})[0].kind == SignKind::throttled);
  CHECK(of({"    SW Thermal Slowdown : Not Active"}).empty());
  CHECK(of({"saving checkpoint at iteration     500 to /ckpt in torch_dist format"})[0].kind ==
        SignKind::checkpoint);
  CHECK(of({"Running with UnfusedDotProductAttention backend"})[0].kind ==
        SignKind::attention_fallback);
  CHECK(of({"using torch.float32 for parameters ..."})[0].kind == SignKind::full_precision);
  CHECK(of({"", "short", "an ordinary line of a log"}).empty());
  CHECK(of({std::string(5000, 'x').append("NET/Socket : Using").c_str()}).empty());
}

}  // namespace log_signs_test
