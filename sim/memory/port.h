// One AXI port of a memory: handshakes, bursts, the order of identifiers, and moving the bytes.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "backend.h"
#include "checker.h"
#include "jitter.h"
#include "model.h"
#include "tamper.h"
#include "trace.h"

namespace loom {

class Port {
 public:
  Port(int index, uint32_t data_bytes, uint64_t base, uint8_t* store, Backend& backend, Checker checker, Jitter jitter,
       Tampers& tampers, Trace* trace);

  // What the kernel handed over at `edge`, given what it saw there (`response`).
  void take(uint64_t edge, const uint32_t* request, const uint32_t* response);
  // What the kernel sees at `edge + 1`.
  void show(uint64_t edge, uint32_t* response);
  void reset(uint64_t edge, const uint32_t* request, uint32_t* response);
  // Whether nothing is under way and `show` would change nothing.
  bool quiet() const { return reads_.empty() && writes_.empty() && !jitter_.on() && steady_; }
  // Reports what must not be open when a run ends.
  void end(uint64_t edge);
  // The burst after `skip` others is answered with an error: a read's middle beat, whose data are wrong then, with
  // SLVERR, and a write, which is lost, with DECERR.
  void refuse(bool write, uint64_t skip) { (write ? refuse_write_ : refuse_read_) = skip; }
  std::string counters() const;

 private:
  struct Latency {
    uint64_t count = 0, sum = 0, least = ~uint64_t{0}, most = 0;
    void add(uint64_t edges);
    std::string json(const char* name) const;
  };
  struct Counters {
    uint64_t read_bytes = 0, write_bytes = 0, read_beats = 0, write_beats = 0, read_bursts = 0, write_bursts = 0;
    uint64_t read_data_stall = 0, write_data_stall = 0, read_address_stall = 0, write_address_stall = 0;
    uint64_t response_stall = 0, read_wait = 0;
    Latency read, write;
  };

  Transaction* accept(uint64_t edge, bool write, uint64_t address, uint32_t length, uint32_t id);
  // Counts an edge at which what is offered on `channel` was not taken.
  void stalled(uint64_t& counter, AxiChannel channel);
  // Records a transfer where there is a trace: `at` bytes into the burst.
  void record(uint64_t edge, AxiChannel channel, const Transaction& transaction, uint32_t at, uint32_t bytes);
  void take_data(uint64_t edge, const uint32_t* request);
  void commit(Transaction& transaction);
  // Whether the beat of a read that is next is its middle one, and answered with an error.
  bool wrong(const Transaction& read) const {
    return read.answer && read.bytes_moved / data_bytes_ == read.bytes / data_bytes_ / 2;
  }
  Transaction* next_read(uint64_t edge);
  Transaction* next_write(uint64_t edge);
  std::unique_ptr<Transaction> fresh();
  void drop(std::deque<std::unique_ptr<Transaction>>& queue, Transaction* transaction);

  int index_;
  uint32_t data_bytes_, strobe_words_;
  uint64_t base_;
  uint8_t* store_;
  Backend& backend_;
  Checker checker_;
  Jitter jitter_;
  Tampers& tampers_;
  Trace* trace_;  // null: none
  uint16_t waited_[5] = {};  // edges since valid rose, by channel
  std::deque<std::unique_ptr<Transaction>> reads_, writes_;
  std::vector<std::unique_ptr<Transaction>> spare_;
  uint64_t ids_ = 0;              // identifiers reads have used, modulo 64
  size_t filling_ = 0;            // the write in `writes_` that takes data
  uint64_t refuse_read_ = ~uint64_t{0}, refuse_write_ = ~uint64_t{0};  // bursts until then: none
  Transaction* reading_ = nullptr;     // whose beat is shown
  Transaction* responding_ = nullptr;  // whose response is shown
  bool steady_ = false;
  std::vector<Transaction*> ready_;    // scratch of next_read and next_write
  Counters counters_;
};

}  // namespace loom
