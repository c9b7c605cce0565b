// The bytes of a memory: address space reserved at once, pages taken from the machine when first touched.
#pragma once
#include <cstdint>

namespace loom {

class Store {
 public:
  Store() = default;
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Throws ConfigError when the address space cannot be had. Keeps its bytes when the size does not change.
  void resize(uint64_t bytes);
  uint8_t* data() { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace loom
