// DRAM channels behind the memory's own AXI ports: HBM with its switch, or DDR whose ports share the controller.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "backend.h"
#include "channel.h"
#include "parameters.h"

namespace loom {

template <typename Visit>
void each_bit(uint64_t mask, Visit visit) {
  for (; mask; mask &= mask - 1) visit(__builtin_ctzll(mask));
}

class Dram : public Backend {
 public:
  // `hbm` adds the switch. `port_channels` says beside which channel each kernel port is attached.
  Dram(const Parameters& parameters, bool hbm, int ports);

  bool read_room(int port) const override;
  bool write_room(int port) const override;
  bool data_room(int port) const override;
  void read(Transaction* transaction) override;
  void write(Transaction* transaction) override;
  void write_data(Transaction* transaction, uint32_t bytes) override;
  void read_taken(Transaction* transaction, uint32_t bytes) override;
  void write_taken(Transaction* transaction) override;
  void advance(uint64_t edge) override;
  void skip(uint64_t edge) override { tick_ = tick_of(edge); }
  bool idle() const override { return under_way_ == 0; }
  void reset() override;
  std::string channel_counters() override;

 private:
  // Earlier transfers with the same identifier to another channel must be complete before one may start.
  static constexpr int kIds = 64;  // the ports' identifiers have six bits
  struct Order {
    uint16_t channel = 0;
    uint32_t open = 0;
  };
  struct Return {
    uint64_t tick;  // when it passes the memory's own port
    Burst* burst;
    bool last;  // of the burst
  };
  struct Port {
    int channel = 0;                          // attached beside
    std::deque<Burst*> reads, writes;         // to enter the switch, in order
    std::deque<Return> returns, responses;    // read data and write responses on their way to the kernel,
    size_t returns_passed = 0, responses_passed = 0;  // of which so many have passed the memory's own port
    std::deque<Transaction*> outstanding;     // reads in order, to know the oldest
    std::deque<std::pair<uint64_t, uint32_t>> data;  // write data on their way: tick at the switch, granules
    uint32_t data_here = 0;                   // granules of write data at the switch
    uint32_t data_granules = 0;               // and all that are not yet in a channel
    uint32_t return_bytes = 0;                // return buffer taken
    uint32_t reads_open = 0, writes_open = 0;
    Burst* reading = nullptr;                 // the transfer that holds the port
    Burst* writing = nullptr;
    uint64_t read_tick = 0, write_tick = 0, last_return_tick = 0;
    Order read_order[kIds], write_order[kIds];
  };
  struct Switched {
    std::unique_ptr<Channel> channel;
    std::vector<Burst*> reads;  // granted and not yet returned, in order
    bool read_busy = false, write_busy = false;
    int read_turn = 0, write_turn = 0;  // the port that comes first
    uint64_t requests = 0;              // ports that ask in this tick
  };
  // A lateral link: one burst holds it at a time. `waiting` are the ports that want it in `waiting_tick`.
  struct Link {
    bool busy = false;
    int master = -1;
    uint64_t used_tick = 0, waiting = 0, waiting_tick = 0;
  };
  // Lateral links of one route, to be taken together.
  struct Route {
    uint32_t request_ticks, response_ticks;
    std::vector<uint16_t> forward, backward;  // write data; read data
  };

  uint64_t tick_of(uint64_t edge) const;
  void split(Transaction* transaction, std::deque<Burst*>& queue);
  Burst* new_burst();
  const Route& route(int port, int channel) const { return routes_[port * channels_.size() + channel]; }
  bool links_free(const std::vector<uint16_t>& links, const std::vector<Link>& side, int port, uint32_t dead) const;
  void want_links(const std::vector<uint16_t>& links, std::vector<Link>& side, int port);
  void hold_links(const std::vector<uint16_t>& links, std::vector<Link>& side, int port);
  void free_links(const std::vector<uint16_t>& links, std::vector<Link>& side);
  void make_routes(const Parameters& parameters, bool hbm);
  int grant(uint64_t requests, int& turn) const;

  void step();
  void pass_returns(Port& port);
  void deliver(Port& port, uint64_t limit);
  void read_requests();
  bool may_return(const Switched& from, size_t index) const;
  void read_data();
  void write_requests();
  void write_data_step();

  DramTiming timing_;
  SharedCap cap_;
  int ports_count_;
  uint64_t kernel_khz_, axi_khz_;
  uint32_t ratio_;  // command clocks in a tick of the AXI clock
  uint64_t channel_bytes_;
  uint32_t granule_, granule_ticks_, burst_granules_;
  uint32_t response_ticks_, write_response_, fabric_request_, fabric_response_, fabric_write_bytes_, fabric_read_bytes_;
  uint32_t port_reads_, port_writes_, dead_ticks_;
  bool shared_return_;  // a channel returns to, and takes from, one port at a time
  std::vector<Port> ports_;
  std::vector<Switched> channels_;
  std::vector<Route> routes_;
  std::vector<Link> forward_, backward_;
  std::vector<std::unique_ptr<Burst>> pool_;
  std::vector<Burst*> free_;
  int return_turn_ = 0;  // the channel whose data come first
  uint64_t tick_ = 0;
  uint64_t under_way_ = 0;     // transactions not yet taken back by the kernel
  uint64_t busy_ports_ = 0;    // ports with anything under way
  uint64_t busy_channels_ = 0; // channels with reads granted
};

}  // namespace loom
