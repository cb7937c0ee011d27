#include "calibrate/commands/cpu_models.hpp"

namespace calibrate {

namespace {

SmallModel gpt(std::int64_t hidden, std::int64_t heads, std::int64_t sequence,
               std::int64_t micro_batch) {
  SmallModel m;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.ffn = 4 * hidden;
  m.sequence = sequence;
  m.micro_batch = micro_batch;
  return m;
}

SmallModel llama(std::int64_t hidden, std::int64_t heads, std::int64_t sequence,
                 std::int64_t micro_batch) {
  SmallModel m = gpt(hidden, heads, sequence, micro_batch);
  m.llama = true;
  m.kv_heads = heads / 2;
  m.ffn = hidden * 11 / 4;
  return m;
}

SmallModel with_dropout(SmallModel m) {
  m.dropout = 0.1;
  return m;
}

SmallModel unfused(SmallModel m) {
  m.flash = false;
  return m;
}

// One layer with a narrow MLP: large tensors without much arithmetic.
SmallModel thin(SmallModel m) {
  m.layers = 1;
  m.ffn = m.hidden;
  return m;
}

}  // namespace

std::vector<SmallModel> probed_models(bool quick) {
  if (quick) {
    return {gpt(128, 4, 32, 2),   gpt(256, 4, 128, 1),   gpt(512, 8, 256, 1),
            llama(128, 4, 32, 2), llama(256, 4, 128, 1), llama(512, 8, 256, 1)};
  }
  std::vector<SmallModel> all;
  for (const auto& make : {gpt, llama}) {
    all.push_back(make(64, 2, 32, 1));
    all.push_back(make(128, 4, 64, 1));
    all.push_back(make(256, 4, 128, 1));
    all.push_back(make(512, 8, 256, 1));
    all.push_back(make(512, 8, 512, 2));
    all.push_back(thin(make(1024, 16, 512, 4)));
    all.push_back(make(352, 22, 144, 2));  // not divisible by large powers of two
    all.push_back(make(704, 22, 208, 1));
    all.push_back(make(832, 26, 112, 3));
  }
  for (const auto& m : {gpt(128, 4, 64, 1), gpt(256, 4, 256, 1), gpt(512, 8, 256, 4)}) {
    all.push_back(with_dropout(unfused(m)));
    all.push_back(unfused(m));
  }
  return all;
}

std::vector<SmallModel> held_out_models() {
  return {
      gpt(256, 8, 96, 1),    gpt(256, 4, 192, 2),    gpt(320, 5, 64, 4),    gpt(384, 6, 128, 1),
      gpt(384, 12, 384, 1),  gpt(448, 7, 160, 3),    gpt(576, 9, 96, 2),    gpt(640, 10, 192, 1),
      gpt(768, 12, 64, 1),   gpt(896, 14, 128, 2),   llama(256, 4, 64, 3),  llama(320, 10, 192, 1),
      llama(384, 6, 96, 4),  llama(448, 14, 448, 1), llama(512, 16, 80, 2), llama(640, 10, 128, 1),
      llama(640, 8, 320, 2), llama(768, 12, 192, 1), llama(896, 14, 64, 2), llama(960, 8, 384, 1)};
}

}  // namespace calibrate
