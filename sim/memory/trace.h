// A file with every transfer at the ports of a memory.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

#include "parameters.h"

namespace loom {

// The channels of a port; sim/memory/trace.py has the same numbers.
enum AxiChannel : uint8_t { kAw, kW, kB, kAr, kR };

class Trace {
 public:
  // Throws ConfigError when the file cannot be written.
  explicit Trace(const std::string& path) : file_(std::fopen(path.c_str(), "wb")) {
    if (!file_) throw ConfigError("the trace " + path + " cannot be written");
  }
  ~Trace() { std::fclose(file_); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void add(uint64_t edge, uint64_t address, uint32_t bytes, int port, AxiChannel channel, uint16_t waited) {
    const Record record{edge, address, bytes, static_cast<uint8_t>(port), channel, waited};
    std::fwrite(&record, sizeof record, 1, file_);
  }
  // Whether all of it is in the file.
  bool flush() { return std::fflush(file_) == 0 && !std::ferror(file_); }

 private:
  struct Record {
    uint64_t edge, address;
    uint32_t bytes;
    uint8_t port, channel;
    uint16_t waited;
  };
  static_assert(sizeof(Record) == 24, "what sim/memory/trace.py reads");

  std::FILE* file_;
};

}  // namespace loom
