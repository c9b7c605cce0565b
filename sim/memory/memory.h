// A memory: its store, its ports and its model of time, driven edge by edge.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "checker.h"
#include "parameters.h"
#include "port.h"
#include "store.h"
#include "tamper.h"
#include "trace.h"

namespace loom {

class Memory {
 public:
  // Throws ConfigError.
  Memory(const std::string& text, const std::string& name, int ports, int data_bits);

  void configure(const std::string& text);
  bool cycle(bool reset, const uint32_t* request, uint32_t* response);
  void idle(uint64_t edges);
  bool refuse(int port, bool write, uint64_t skip) {
    if (port < 0 || port >= ports_count_) return false;
    ports_[static_cast<size_t>(port)]->refuse(write, skip);
    return true;
  }
  Store& store() { return store_; }
  const std::string& name() const { return name_; }
  const char* counters();
  const char* errors(bool at_end);

 private:
  std::string name_;
  int ports_count_;
  uint32_t data_bytes_, request_words_, response_words_;
  Store store_;
  std::unique_ptr<Tampers> tampers_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Port>> ports_;
  // What the kernel sees; the caller's array need not survive from one edge to the next.
  std::vector<uint32_t> shown_;
  Violations violations_;
  uint64_t edge_ = 0;
  bool in_reset_ = false;
  bool ended_ = false;
  std::string text_;
};

}  // namespace loom
