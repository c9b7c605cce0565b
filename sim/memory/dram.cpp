#include "dram.h"

#include <algorithm>
#include <cmath>

namespace loom {

Dram::Dram(const Parameters& p, bool hbm, int ports)
    : timing_(p), ports_count_(ports), kernel_khz_(p.whole("kernel_clock_khz")), shared_return_(hbm) {
  const auto axi_mhz = p.number("axi_clock_mhz");
  axi_khz_ = static_cast<uint64_t>(std::llround(axi_mhz * 1000));
  ratio_ = static_cast<uint32_t>(std::lround(p.number("command_clock_mhz") / axi_mhz));
  granule_ = timing_.granule_bytes;
  const auto beat = p.whole("port_beat_bytes");
  granule_ticks_ = static_cast<uint32_t>(std::max<uint64_t>(1, granule_ / beat));
  burst_granules_ = static_cast<uint32_t>(p.whole("burst_granules"));
  if (burst_granules_ > kMaxBurstGranules) throw ConfigError("burst_granules is more than 64");
  write_response_ = static_cast<uint32_t>(p.whole("write_response_axi_cycles"));
  const auto ticks = [&](const char* key) {
    return static_cast<uint32_t>(std::llround(p.number(key) * axi_mhz / 1000));
  };
  fabric_request_ = ticks("fabric_request_ns");
  fabric_response_ = ticks("fabric_response_ns");
  fabric_write_bytes_ = static_cast<uint32_t>(p.whole("fabric_write_bytes"));
  fabric_read_bytes_ = static_cast<uint32_t>(p.whole("fabric_read_bytes"));
  port_reads_ = static_cast<uint32_t>(p.whole("port_read_bursts"));
  port_writes_ = static_cast<uint32_t>(p.whole("port_write_bursts"));
  channel_bytes_ = p.whole("channel_bytes");
  dead_ticks_ = hbm ? static_cast<uint32_t>(p.whole("lateral_dead_axi_cycles")) : 0;
  if (hbm && p.number("card_bytes_per_second") > 0)
    cap_.interval_ck = granule_ * p.number("command_clock_mhz") * 1e6 / p.number("card_bytes_per_second");

  const auto beside = p.list("port_channels");
  const auto count = p.whole("channels");
  if (count < 1 || count > 64) throw ConfigError("channels must be from 1 to 64");
  if (beside.size() != static_cast<size_t>(ports)) throw ConfigError("port_channels must name one channel a port");
  ports_.resize(ports);
  for (int i = 0; i < ports; ++i) {
    if (beside[i] >= count) throw ConfigError("port_channels names a channel that is not there");
    ports_[i].channel = static_cast<int>(beside[i]);
  }
  channels_.resize(count);
  // Refreshes are spread over the interval, so that not all channels stop at once.
  for (size_t i = 0; i < count; ++i)
    channels_[i].channel = std::make_unique<Channel>(
        timing_, &cap_, timing_.refresh_interval * (i + 1) / count + timing_.refresh_interval / 2);
  make_routes(p, hbm);
}

// A route's lateral links are numbered (boundary * links + lane) * 2 + direction; masters share the lanes evenly.
void Dram::make_routes(const Parameters& p, bool hbm) {
  const auto request = static_cast<uint32_t>(p.whole("request_axi_cycles")) - 1;  // the grant takes one
  const auto response = static_cast<uint32_t>(p.whole("response_axi_cycles"));
  response_ticks_ = response;
  routes_.resize(ports_.size() * channels_.size());
  for (auto& route : routes_) route = {request, response, {}, {}};
  if (!hbm) return;
  const auto group = static_cast<int>(p.whole("ports_per_switch"));
  const auto stack = static_cast<int>(p.whole("channels_per_stack"));
  const auto lanes = static_cast<int>(p.whole("lateral_links"));
  const auto switched = static_cast<uint32_t>(p.whole("switch_axi_cycles"));
  const auto lateral = p.list("lateral_axi_cycles");
  const auto crossing = static_cast<uint32_t>(p.whole("stack_axi_cycles"));
  const size_t links = (channels_.size() / group + 1) * lanes * 2;
  forward_.resize(links);
  backward_.resize(links);
  for (size_t port = 0; port < ports_.size(); ++port)
    for (size_t channel = 0; channel < channels_.size(); ++channel) {
      Route& route = routes_[port * channels_.size() + channel];
      const int from = ports_[port].channel / group, to = static_cast<int>(channel) / group;
      const int lane = ports_[port].channel % group * lanes / group;
      const auto distance = static_cast<size_t>(std::abs(from - to));
      if (distance >= lateral.size()) throw ConfigError("lateral_axi_cycles is too short for the number of channels");
      const bool other_stack = ports_[port].channel / stack != static_cast<int>(channel) / stack;
      const auto extra = switched + static_cast<uint32_t>(lateral[distance]) + (other_stack ? crossing : 0);
      route.request_ticks += extra / 2;
      route.response_ticks += extra - extra / 2;
      for (int b = std::min(from, to); b < std::max(from, to); ++b) {
        const int right = to > from;
        route.forward.push_back(static_cast<uint16_t>((b * lanes + lane) * 2 + right));
        route.backward.push_back(static_cast<uint16_t>((b * lanes + lane) * 2 + !right));
      }
    }
}

uint64_t Dram::tick_of(uint64_t edge) const {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(edge) * axi_khz_ / kernel_khz_);
}

bool Dram::read_room(int port) const { return ports_[port].reads_open < port_reads_; }
bool Dram::write_room(int port) const { return ports_[port].writes_open < port_writes_; }
bool Dram::data_room(int port) const { return ports_[port].data_granules * granule_ < fabric_write_bytes_; }

Burst* Dram::new_burst() {
  if (free_.empty()) {
    pool_.push_back(std::make_unique<Burst>());
    return pool_.back().get();
  }
  Burst* burst = free_.back();
  free_.pop_back();
  return burst;
}

// Cuts a kernel's burst into transfers that the memory's own ports take as one.
void Dram::split(Transaction* transaction, std::deque<Burst*>& queue) {
  uint64_t address = transaction->address & ~uint64_t{granule_ - 1};
  const uint64_t end = transaction->address + transaction->bytes;
  while (address < end) {
    Burst* burst = new_burst();
    const auto left = static_cast<uint32_t>((end - address + granule_ - 1) / granule_);
    burst->owner = transaction;
    burst->channel = static_cast<uint16_t>(address / channel_bytes_);
    burst->address = address % channel_bytes_;
    burst->enter_tick = tick_ + 1 + fabric_request_;
    burst->port = transaction->port;
    burst->id = transaction->id % kIds;
    burst->granules = static_cast<uint16_t>(std::min(left, burst_granules_));
    burst->issued = burst->sent = 0;
    burst->skip = address < transaction->address ? static_cast<uint16_t>(transaction->address - address) : 0;
    std::fill_n(burst->ready_ck.begin(), burst->granules, kNever);
    queue.push_back(burst);
    ++transaction->parts_left;
    address += uint64_t{burst->granules} * granule_;
  }
}

void Dram::read(Transaction* transaction) {
  Port& port = ports_[transaction->port];
  split(transaction, port.reads);
  port.outstanding.push_back(transaction);
  ++port.reads_open;
  ++under_way_;
  busy_ports_ |= uint64_t{1} << transaction->port;
}

void Dram::write(Transaction* transaction) {
  Port& port = ports_[transaction->port];
  split(transaction, port.writes);
  ++port.writes_open;
  ++under_way_;
  busy_ports_ |= uint64_t{1} << transaction->port;
}

void Dram::write_data(Transaction* transaction, uint32_t bytes) {
  const auto offset = static_cast<uint32_t>(transaction->address & (granule_ - 1));
  const auto whole = [&](uint32_t moved) {
    return (moved + offset + (moved == transaction->bytes ? granule_ - 1 : 0)) / granule_;
  };
  const uint32_t granules = whole(transaction->bytes_moved) - whole(transaction->bytes_moved - bytes);
  Port& port = ports_[transaction->port];
  if (!granules) return;
  port.data.emplace_back(tick_ + 1 + fabric_request_, granules);
  port.data_granules += granules;
}

void Dram::read_taken(Transaction* transaction, uint32_t bytes) {
  Port& port = ports_[transaction->port];
  const bool done = transaction->bytes_moved == transaction->bytes;
  const uint32_t freed = done ? transaction->reserved : std::min(bytes, transaction->reserved);
  transaction->reserved -= freed;
  port.return_bytes -= freed;
  if (!done) return;
  port.outstanding.erase(std::find(port.outstanding.begin(), port.outstanding.end(), transaction));
  --port.reads_open;
  --under_way_;
  if (!port.reads_open && !port.writes_open) busy_ports_ &= ~(uint64_t{1} << transaction->port);
}

void Dram::write_taken(Transaction* transaction) {
  Port& port = ports_[transaction->port];
  --port.writes_open;
  --under_way_;
  if (!port.reads_open && !port.writes_open) busy_ports_ &= ~(uint64_t{1} << transaction->port);
}

void Dram::advance(uint64_t edge) {
  const uint64_t limit = tick_of(edge);
  while (tick_ < limit) {
    ++tick_;
    step();
  }
  each_bit(busy_ports_, [&](int index) { deliver(ports_[index], limit); });
}

void Dram::reset() {
  for (auto& port : ports_) {
    const int channel = port.channel;
    port = Port();
    port.channel = channel;
  }
  for (auto& channel : channels_) {
    channel.channel->reset();
    channel.reads.clear();
    channel.read_busy = channel.write_busy = false;
    channel.requests = 0;
  }
  std::fill(forward_.begin(), forward_.end(), Link());
  std::fill(backward_.begin(), backward_.end(), Link());
  free_.clear();
  pool_.clear();
  under_way_ = busy_ports_ = busy_channels_ = 0;
}

std::string Dram::channel_counters() {
  std::string text;
  for (auto& switched : channels_) {
    switched.channel->advance((tick_ + 1) * ratio_ - 1);
    const Channel::Counters& c = switched.channel->counters();
    const auto field = [](const char* name, uint64_t value) {
      return std::string("\"") + name + "\":" + std::to_string(value);
    };
    text += text.empty() ? "[{" : ",{";
    text += field("read_bytes", c.read_bytes) + "," + field("write_bytes", c.write_bytes) + "," +
            field("row_hits", c.row_hits) + "," + field("row_closed", c.row_closed) + "," +
            field("row_misses", c.row_misses) + "," + field("activates", c.activates) + "," +
            field("refreshes", c.refreshes) + "," + field("turnarounds", c.turnarounds) + "," +
            field("busy_axi_cycles", c.busy_ck / ratio_) + "}";
  }
  return text + "]";
}

}  // namespace loom
