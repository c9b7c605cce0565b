#include "pipe.h"

#include <algorithm>

namespace loom {
namespace {

constexpr uint64_t kLongestBurstBytes = 4096;
constexpr double kRounding = 1e-3;  // ps: far below any period, far above the error of the sums

}  // namespace

Pipe::Pipe(const Parameters& p, bool host, int ports, uint32_t beat_bytes)
    : shared_(host), beat_bytes_(beat_bytes), edge_ps_(1e9 / p.number("kernel_clock_khz")) {
  double bytes_per_second = p.number("bytes_per_second");
  common_byte_ps_ = 0;
  if (host) {
    // Cyclic use of more than the cache holds: the share that is not cached goes at the slower rates.
    const double used = p.number("working_set_bytes"), cached = p.number("cached_bytes");
    const double large = p.number("large_bytes_per_second"), shared = p.number("large_shared_bytes_per_second");
    const double missed = used > cached ? 1 - cached / used : 0;
    bytes_per_second = 1 / ((1 - missed) / bytes_per_second + missed / std::min(large, bytes_per_second));
    common_byte_ps_ = missed * 1e12 / shared;
    read_latency_ps_ = p.number("first_data_ns") * 1e3;
    write_latency_ps_ = p.number("write_response_ns") * 1e3;
    read_limit_ = p.whole("read_bursts");
    write_limit_ = p.whole("write_bursts");
    in_flight_limit_ = p.whole("read_in_flight_bytes");
    buffer_ps_ = p.number("write_buffer_bytes") * 1e12 / bytes_per_second;
  } else {
    read_latency_ps_ = write_latency_ps_ = p.number("latency_ns") * 1e3;
    read_limit_ = write_limit_ = p.whole("port_bursts") * ports;
    in_flight_limit_ = read_limit_ * kLongestBurstBytes;
    buffer_ps_ = edge_ps_ + beat_bytes * 1e12 / bytes_per_second;
  }
  byte_ps_ = 1e12 / bytes_per_second;
  read_lanes_.resize(host ? 1 : ports);
  write_lanes_.resize(host ? 1 : ports);
}

bool Pipe::read_room(int) const {
  return reads_open_ < read_limit_ && in_flight_ + kLongestBurstBytes <= in_flight_limit_;
}

bool Pipe::write_room(int) const { return writes_open_ < write_limit_; }

bool Pipe::data_room(int port) const {
  return write_lanes_[shared_ ? 0 : port].free_ps - now_ps_ < buffer_ps_ - kRounding;
}

// Sends `bytes` through a lane: the first arrive `latency_ps` from now at the earliest. Returns when the last do.
double Pipe::through(Lane& lane, double latency_ps, uint32_t bytes) {
  lane.free_ps = std::max(lane.free_ps, now_ps_ + latency_ps) + bytes * byte_ps_;
  if (common_byte_ps_ > 0) {
    common_.free_ps = std::max(common_.free_ps, now_ps_) + bytes * common_byte_ps_;
    lane.free_ps = std::max(lane.free_ps, common_.free_ps + latency_ps);
  }
  return lane.free_ps;
}

void Pipe::read(Transaction* transaction) {
  const double end = through(lane(read_lanes_, transaction->port), read_latency_ps_, transaction->bytes);
  reads_.push_back({transaction, end - transaction->bytes * byte_ps_});
  ++reads_open_;
  in_flight_ += transaction->bytes;
  read_bytes_ += transaction->bytes;
}

void Pipe::write(Transaction*) { ++writes_open_; }

void Pipe::write_data(Transaction* transaction, uint32_t bytes) {
  const double end = through(lane(write_lanes_, transaction->port), 0, bytes);
  write_bytes_ += bytes;
  if (transaction->bytes_moved == transaction->bytes) writes_.push_back({transaction, end + write_latency_ps_});
}

void Pipe::read_taken(Transaction* transaction, uint32_t bytes) {
  in_flight_ -= bytes;
  if (transaction->bytes_moved == transaction->bytes) --reads_open_;
}

void Pipe::write_taken(Transaction*) { --writes_open_; }

void Pipe::advance(uint64_t edge) {
  now_ps_ = static_cast<double>(edge) * edge_ps_;
  const double now = now_ps_ + kRounding;
  for (auto read = reads_.begin(); read != reads_.end();) {
    if (read->first_ps > now) {
      if (shared_) break;  // one lane: the rest is later
      ++read;
      continue;
    }
    Transaction& transaction = *read->transaction;
    const double beats = 1 + (now - read->first_ps) / (beat_bytes_ * byte_ps_);
    transaction.bytes_ready =
        static_cast<uint32_t>(std::min<double>(transaction.bytes, static_cast<uint64_t>(beats) * beat_bytes_));
    read = transaction.bytes_ready == transaction.bytes ? reads_.erase(read) : read + 1;
  }
  for (auto write = writes_.begin(); write != writes_.end();) {
    if (write->answer_ps > now) {
      if (shared_) break;
      ++write;
      continue;
    }
    write->transaction->answered = true;
    write = writes_.erase(write);
  }
}

void Pipe::reset() {
  reads_.clear();
  writes_.clear();
  std::fill(read_lanes_.begin(), read_lanes_.end(), Lane());
  std::fill(write_lanes_.begin(), write_lanes_.end(), Lane());
  common_ = Lane();
  reads_open_ = writes_open_ = in_flight_ = 0;
}

std::string Pipe::channel_counters() {
  return "[{\"read_bytes\":" + std::to_string(read_bytes_) + ",\"write_bytes\":" + std::to_string(write_bytes_) + "}]";
}

}  // namespace loom
