// Changes of the store behind the kernel's back, for kernels that do not trust their memory.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "parameters.h"

namespace loom {

class Tampers {
 public:
  // Six numbers each: the address at which a read burst begins that is waited for, how many such come before, the
  // address of the bytes that change, of those they become, how many, and what each is XORed with.
  Tampers(const std::vector<uint64_t>& numbers, uint64_t base, uint64_t bytes, uint8_t* store) : store_(store) {
    if (numbers.size() % 6) throw ConfigError("tampers have six numbers each");
    for (size_t i = 0; i < numbers.size(); i += 6) {
      const uint64_t* n = &numbers[i];
      for (const uint64_t at : {n[2], n[3]})
        if (at < base || n[4] > bytes || at - base > bytes - n[4]) throw ConfigError("tampers are within the memory");
      changes_.push_back({n[0] - base, n[1], n[2] - base, n[3] - base, n[4], static_cast<uint8_t>(n[5])});
    }
  }

  // A read burst begins.
  void read(uint64_t address) {
    for (Change& change : changes_) {
      if (change.read != address || change.skip-- != 0) continue;
      std::memmove(store_ + change.to, store_ + change.source, change.bytes);
      for (uint64_t i = 0; i < change.bytes; ++i) store_[change.to + i] ^= change.mask;
    }
  }

 private:
  struct Change {
    uint64_t read, skip, to, source, bytes;
    uint8_t mask;
  };
  std::vector<Change> changes_;
  uint8_t* store_;
};

}  // namespace loom
