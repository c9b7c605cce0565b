// What happens in one cycle of the memory's own ports: arbitration, the lateral links, and the way of every beat.
#include <algorithm>

#include "dram.h"

namespace loom {

// Whether all links can be taken: after another port only past the dead cycles, and after the same port only if no
// other wanted one when it became free. That other gets one chance: links must not wait for each other in a ring.
bool Dram::links_free(const std::vector<uint16_t>& links, const std::vector<Link>& side, int port,
                      uint32_t dead) const {
  for (const auto index : links) {
    const Link& link = side[index];
    if (link.busy) return false;
    if (link.master < 0) continue;
    if (link.master != port) {
      if (tick_ <= link.used_tick + dead) return false;
    } else if (tick_ <= link.used_tick + dead + 1 && link.waiting_tick == tick_ &&
               link.waiting & ~(uint64_t{1} << port)) {
      return false;
    }
  }
  return true;
}

void Dram::want_links(const std::vector<uint16_t>& links, std::vector<Link>& side, int port) {
  for (const auto index : links) {
    Link& link = side[index];
    if (link.waiting_tick != tick_) link.waiting = 0;
    link.waiting_tick = tick_;
    link.waiting |= uint64_t{1} << port;
  }
}

void Dram::hold_links(const std::vector<uint16_t>& links, std::vector<Link>& side, int port) {
  for (const auto index : links) {
    side[index].busy = true;
    side[index].master = port;
  }
}

void Dram::free_links(const std::vector<uint16_t>& links, std::vector<Link>& side) {
  for (const auto index : links) {
    side[index].busy = false;
    side[index].used_tick = tick_;
  }
}

// Data and responses that reach the memory's own port: there a transfer is complete for the order of its identifier.
void Dram::pass_returns(Port& port) {
  for (; port.returns_passed < port.returns.size() && port.returns[port.returns_passed].tick <= tick_;
       ++port.returns_passed) {
    const Return& passed = port.returns[port.returns_passed];
    if (passed.last) --port.read_order[passed.burst->id].open;
  }
  for (; port.responses_passed < port.responses.size() && port.responses[port.responses_passed].tick <= tick_;
       ++port.responses_passed)
    --port.write_order[port.responses[port.responses_passed].burst->id].open;
}

// Hands over to the kernel's port what has crossed the fabric by `limit`.
void Dram::deliver(Port& port, uint64_t limit) {
  while (port.returns_passed && port.returns.front().tick + fabric_response_ <= limit) {
    const Return item = port.returns.front();
    port.returns.pop_front();
    --port.returns_passed;
    Transaction* owner = item.burst->owner;
    owner->bytes_ready = std::min(owner->bytes, owner->bytes_ready + granule_ - item.burst->skip);
    item.burst->skip = 0;
    if (item.last) free_.push_back(item.burst);
  }
  while (port.responses_passed && port.responses.front().tick + fabric_response_ <= limit) {
    Burst* burst = port.responses.front().burst;
    port.responses.pop_front();
    --port.responses_passed;
    if (--burst->owner->parts_left == 0) burst->owner->answered = true;
    free_.push_back(burst);
  }
}

// Picks the next of the ports that ask, after the last one that got it.
int Dram::grant(uint64_t requests, int& turn) const {
  const uint64_t later = requests & ~((uint64_t{1} << turn) - 1);
  const int port = __builtin_ctzll(later ? later : requests);
  turn = (port + 1) & 63;
  return port;
}

// Read addresses: one a cycle from a port and into a channel.
void Dram::read_requests() {
  uint64_t asked = 0;
  each_bit(busy_ports_, [&](int index) {
    Port& port = ports_[index];
    if (port.reads.empty() || port.reads.front()->enter_tick > tick_) return;
    const Burst& burst = *port.reads.front();
    const Order& order = port.read_order[burst.id];
    if (order.open && order.channel != burst.channel) return;
    Switched& to = channels_[burst.channel];
    if (!to.channel->read_room()) return;
    to.requests |= uint64_t{1} << index;
    asked |= uint64_t{1} << burst.channel;
  });
  each_bit(asked, [&](int index) {
    Switched& to = channels_[index];
    Port& port = ports_[grant(to.requests, to.read_turn)];
    to.requests = 0;
    Burst* burst = port.reads.front();
    port.reads.pop_front();
    Order& order = port.read_order[burst->id];
    order.channel = burst->channel;
    ++order.open;
    burst->arrive_ck = (tick_ + route(burst->port, index).request_ticks) * ratio_;
    to.channel->push_read(burst);
    to.reads.push_back(burst);
    busy_channels_ |= uint64_t{1} << index;
  });
}

// Whether the burst may return: oldest of its identifier, first data there, its port free, and room for all of it.
// The oldest burst of a port, and one the kernel is taking, may exceed the room: they must never wait for others that
// wait for them.
bool Dram::may_return(const Switched& from, size_t index) const {
  const Burst& burst = *from.reads[index];
  const Port& port = ports_[burst.port];
  if (burst.ready_ck[0] > tick_ * ratio_ || port.reading || burst.sent) return false;
  for (size_t older = 0; older < index; ++older)
    if (from.reads[older]->port == burst.port && from.reads[older]->id == burst.id) return false;
  return port.return_bytes + burst.granules * granule_ <= fabric_read_bytes_ || burst.owner->presenting ||
         port.outstanding.front() == burst.owner;
}

// Read data: a burst holds its channel's way out, the links and its port from first data to last.
void Dram::read_data() {
  if (!backward_.empty()) {
    each_bit(busy_channels_, [&](int index) {
      const Switched& from = channels_[index];
      for (size_t i = 0; !from.read_busy && i < from.reads.size(); ++i) {
        if (!may_return(from, i)) continue;
        want_links(route(from.reads[i]->port, index).backward, backward_, from.reads[i]->port);
        break;
      }
    });
  }
  const auto start = [&](int index) {
    Switched& from = channels_[index];
    for (size_t i = 0; !from.read_busy && i < from.reads.size(); ++i) {
      Burst* burst = from.reads[i];
      const auto& links = route(burst->port, index).backward;
      if (!may_return(from, i) || !links_free(links, backward_, burst->port, 0)) continue;
      Port& port = ports_[burst->port];
      port.reading = burst;
      port.read_tick = tick_;
      port.return_bytes += burst->granules * granule_;
      burst->owner->reserved += burst->granules * granule_;
      hold_links(links, backward_, burst->port);
      from.read_busy = shared_return_;
      return_turn_ = (index + 1) & 63;
    }
  };
  const uint64_t later = busy_channels_ & ~((uint64_t{1} << return_turn_) - 1);
  const uint64_t sooner = busy_channels_ & ~later;
  each_bit(later, start);
  each_bit(sooner, start);
  each_bit(busy_ports_, [&](int index) {
    Port& port = ports_[index];
    Burst* burst = port.reading;
    if (!burst || port.read_tick > tick_ || burst->ready_ck[burst->sent] > tick_ * ratio_) return;
    Switched& from = channels_[burst->channel];
    const Route& way = route(index, burst->channel);
    const bool last = ++burst->sent == burst->granules;
    port.read_tick = tick_ + granule_ticks_;
    port.last_return_tick = std::max(port.last_return_tick + granule_ticks_, tick_ + way.response_ticks);
    port.returns.push_back({port.last_return_tick, burst, last});
    from.channel->release_read();
    if (!last) return;
    port.reading = nullptr;
    from.read_busy = false;
    free_links(way.backward, backward_);
    from.reads.erase(std::find(from.reads.begin(), from.reads.end(), burst));
  });
}

// Write data: a burst holds its port, the links and the channel's way in until all its data have passed.
void Dram::write_requests() {
  uint64_t asked = 0;
  each_bit(busy_ports_, [&](int index) {
    Port& port = ports_[index];
    for (; !port.data.empty() && port.data.front().first <= tick_; port.data.pop_front())
      port.data_here += port.data.front().second;
    if (port.writing || port.writes.empty() || !port.data_here || port.writes.front()->enter_tick > tick_) return;
    const Burst& burst = *port.writes.front();
    const Order& order = port.write_order[burst.id];
    if (order.open && order.channel != burst.channel) return;
    Switched& to = channels_[burst.channel];
    if (to.write_busy) return;
    want_links(route(index, burst.channel).forward, forward_, index);
    to.requests |= uint64_t{1} << index;
    asked |= uint64_t{1} << burst.channel;
  });
  each_bit(asked, [&](int channel) {
    Switched& to = channels_[channel];
    while (to.requests) {
      const int index = grant(to.requests, to.write_turn);
      to.requests &= ~(uint64_t{1} << index);
      const auto& links = route(index, channel).forward;
      if (!links_free(links, forward_, index, dead_ticks_)) continue;
      Port& port = ports_[index];
      port.writing = port.writes.front();
      port.writes.pop_front();
      port.write_tick = tick_;
      Order& order = port.write_order[port.writing->id];
      order.channel = port.writing->channel;
      ++order.open;
      hold_links(links, forward_, index);
      to.write_busy = shared_return_;
      if (shared_return_) to.requests = 0;
    }
  });
}

void Dram::write_data_step() {
  each_bit(busy_ports_, [&](int index) {
    Port& port = ports_[index];
    Burst* burst = port.writing;
    if (!burst || !port.data_here || port.write_tick > tick_) return;
    Switched& to = channels_[burst->channel];
    if (!to.channel->write_room()) return;
    const Route& way = route(index, burst->channel);
    const uint64_t arrive = tick_ + way.request_ticks;
    to.channel->push_write(burst->address + uint64_t{burst->sent} * granule_, arrive * ratio_);
    busy_channels_ |= uint64_t{1} << burst->channel;
    --port.data_here;
    --port.data_granules;
    port.write_tick = tick_ + granule_ticks_;
    if (++burst->sent < burst->granules) return;
    const auto back = way.response_ticks - response_ticks_ + write_response_;
    uint64_t tick = arrive + back;
    if (!port.responses.empty()) tick = std::max(tick, port.responses.back().tick);
    port.responses.push_back({tick, burst, true});
    port.writing = nullptr;
    to.write_busy = false;
    free_links(way.forward, forward_);
  });
}

void Dram::step() {
  each_bit(busy_ports_, [&](int index) { pass_returns(ports_[index]); });
  read_data();
  read_requests();
  write_requests();
  write_data_step();
  each_bit(busy_channels_, [&](int index) {
    Switched& channel = channels_[index];
    channel.channel->advance((tick_ + 1) * ratio_ - 1);
    if (channel.reads.empty() && channel.channel->idle()) busy_channels_ &= ~(uint64_t{1} << index);
  });
}

}  // namespace loom
