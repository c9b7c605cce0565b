#include "store.h"

#include <sys/mman.h>

#include <cstring>
#include <string>

#include "parameters.h"

namespace loom {

Store::~Store() {
  if (data_) munmap(data_, bytes_);
}

void Store::resize(uint64_t bytes) {
  if (bytes == bytes_) return;
  if (data_) munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw ConfigError("no address space for a memory of " + std::to_string(bytes) + " bytes: " + strerror(errno));
  data_ = static_cast<uint8_t*>(mapped);
  bytes_ = bytes;
}

}  // namespace loom
