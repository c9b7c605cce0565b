// The AXI rules a kernel must keep, watched at one port.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model.h"

namespace loom {

// Violations of all ports of a memory, in order; only the first ones are kept, all are counted.
class Violations {
 public:
  void add(int port, uint64_t edge, const std::string& text);
  void clear() { texts_.clear(), count_ = 0; }
  std::string text() const;

 private:
  std::vector<std::string> texts_;
  uint64_t count_ = 0;
};

class Checker {
 public:
  Checker(Violations& violations, int port, uint32_t data_bytes, uint32_t max_beats, uint64_t first, uint64_t bytes)
      : violations_(violations), port_(port), data_bytes_(data_bytes), max_beats_(max_beats), first_(first),
        bytes_(bytes) {}

  // Stability of valid and payload: `ready` are the response flags the kernel saw at this edge.
  void edge(uint64_t edge, const uint32_t* request, uint32_t ready);
  // A reset edge: nothing may be valid from the second on.
  void reset(uint64_t edge, const uint32_t* request);
  // An address handshake; `channel` is "aw" or "ar". Returns whether the burst can be carried out.
  bool address(uint64_t edge, const char* channel, uint64_t address, uint32_t length, uint32_t size, uint32_t burst);
  // A data handshake: whether WLAST is where the length says.
  void last(uint64_t edge, bool is, bool should_be);
  // The end of a run, with this many reads, writes without all their data, and writes without response under way.
  void end(uint64_t edge, size_t reads, size_t unfinished, size_t unanswered);

 private:
  void stable(uint64_t edge, const char* channel, bool was, bool is, bool same);

  Violations& violations_;
  int port_;
  uint32_t data_bytes_, max_beats_;
  uint64_t first_, bytes_;
  uint32_t waiting_ = 0;  // valid flags that were not answered at the last edge
  int reset_edges_ = 0;
  std::vector<uint32_t> held_;  // the request of the last edge
};

}  // namespace loom
