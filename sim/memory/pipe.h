// A memory that is a latency and a bandwidth: one pipe a port and direction (fast mode), or one pipe each way that
// all ports share (host memory over PCIe).
#pragma once
#include <deque>
#include <vector>

#include "backend.h"
#include "parameters.h"

namespace loom {

class Pipe : public Backend {
 public:
  // `beat_bytes`: what a kernel port takes at a time.
  Pipe(const Parameters& parameters, bool host, int ports, uint32_t beat_bytes);

  bool read_room(int port) const override;
  bool write_room(int port) const override;
  bool data_room(int port) const override;
  void read(Transaction* transaction) override;
  void write(Transaction* transaction) override;
  void write_data(Transaction* transaction, uint32_t bytes) override;
  void read_taken(Transaction* transaction, uint32_t bytes) override;
  void write_taken(Transaction* transaction) override;
  void advance(uint64_t edge) override;
  void skip(uint64_t edge) override { now_ps_ = static_cast<double>(edge) * edge_ps_; }
  bool idle() const override { return reads_open_ + writes_open_ == 0; }
  void reset() override;
  std::string channel_counters() override;

 private:
  struct Read {
    Transaction* transaction;
    double first_ps;  // when its first beat is there
  };
  struct Write {
    Transaction* transaction;
    double answer_ps;
  };
  // One direction: when the data taken so far have gone through.
  struct Lane {
    double free_ps = 0;
  };
  Lane& lane(std::vector<Lane>& lanes, int port) { return lanes[shared_ ? 0 : port]; }
  double through(Lane& lane, double latency_ps, uint32_t bytes);

  bool shared_;
  uint32_t beat_bytes_;
  double edge_ps_, read_latency_ps_, write_latency_ps_;
  double byte_ps_;         // one direction
  double common_byte_ps_;  // both together; 0 when they do not slow each other
  uint64_t read_limit_, write_limit_, in_flight_limit_;
  double buffer_ps_;       // write data taken in ahead of the lane, as time
  double now_ps_ = 0;
  std::vector<Lane> read_lanes_, write_lanes_;
  Lane common_;
  std::deque<Read> reads_;
  std::deque<Write> writes_;
  uint64_t reads_open_ = 0, writes_open_ = 0, in_flight_ = 0;
  uint64_t read_bytes_ = 0, write_bytes_ = 0;
};

}  // namespace loom
