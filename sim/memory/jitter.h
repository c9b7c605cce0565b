// Random waits by seed: what jitter mode adds to every channel of a port.
#pragma once
#include <cstdint>

namespace loom {

class Jitter {
 public:
  Jitter(uint64_t seed, uint32_t stall_percent, uint32_t latency_edges)
      : state_(seed * 0x9E3779B97F4A7C15ull + 0xD1B54A32D192ED03ull), percent_(stall_percent), latency_(latency_edges) {
    for (int i = 0; i < 8; ++i) next();  // neighbouring seeds start alike
  }

  bool on() const { return percent_ || latency_; }

  // Whether channel `channel` (0 to 4) waits at this edge: single waits, and now and then a long one.
  bool stalls(int channel) {
    if (!percent_) return false;
    if (long_[channel]) {
      --long_[channel];
      return true;
    }
    const uint32_t draw = below(100 * 512);
    if (draw < 100) long_[channel] = draw;  // one in 512
    return draw % 100 < percent_;
  }

  // Extra edges before the answer to a transaction.
  uint64_t latency() { return latency_ ? below(latency_ + 1) : 0; }

  uint32_t below(uint32_t limit) { return static_cast<uint32_t>((next() >> 32) * limit >> 32); }

 private:
  uint64_t next() {  // xorshift64*
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Dull;
  }

  uint64_t state_;
  uint32_t percent_, latency_;
  uint32_t long_[5] = {};
};

}  // namespace loom
