// One DRAM channel: banks with rows, command timing, refresh, and a scheduler that takes ready rows first.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "parameters.h"

namespace loom {

struct Transaction;

constexpr int kMaxBurstGranules = 64;
constexpr int kMaxWindow = 64;
constexpr int kMaxBanks = 64;
constexpr uint64_t kNever = ~uint64_t{0};

struct DramTiming {
  explicit DramTiming(const Parameters& parameters);

  uint32_t cas, cas_write, data, ccd_short, ccd_long, rrd_short, rrd_long, faw;
  uint32_t rcd_read, rcd_write, rp, ras, rc, wtr_short, wtr_long, read_to_write_gap, write_recovery;
  uint32_t read_to_precharge, refresh_interval, refresh;
  uint32_t granule_bytes, window, write_window, read_buffer, write_buffer, queue_bursts;
  uint32_t write_high, direction, refusals;
  uint32_t bank_groups, banks_per_group;
  // Address map: where the bits of bank group and bank are, and those of the row.
  struct Field { char letter; uint32_t shift, mask; };
  std::vector<Field> map;
  uint32_t row_shift, row_mask;
  uint32_t granule_shift;
};

// A cap on several channels together: granules may be issued no faster than one in `interval_ck`.
struct SharedCap {
  double interval_ck = 0;  // 0: none
  double free_ck = 0;
};

// What the switch hands to a channel: at most kMaxBurstGranules granules of one kernel burst.
struct Burst {
  Transaction* owner;
  uint64_t address;  // in the channel, aligned to a granule
  uint64_t enter_tick;
  uint64_t arrive_ck;
  uint16_t port;
  uint16_t id;
  uint16_t channel;
  uint16_t granules;
  uint16_t issued;    // read: granules in the window so far
  uint16_t sent;      // granules through the switch
  uint16_t skip;      // bytes before the first wanted byte
  bool last;          // last part of its owner
  std::array<uint64_t, kMaxBurstGranules> ready_ck;  // read: when each granule's data are out of the DRAM
};

class Channel {
 public:
  Channel(const DramTiming& timing, SharedCap* cap, uint64_t first_refresh_ck);

  bool read_room() const { return reads_queued_.size() < t_.queue_bursts; }
  bool write_room() const { return writes_held_ < t_.write_buffer; }
  // The burst's granules get their ready_ck as they are scheduled.
  void push_read(Burst* burst);
  // One granule of write data for `address`, counted by `write_room` from now on.
  void push_write(uint64_t address, uint64_t arrive_ck);
  // Return buffer of one granule is free again.
  void release_read() { --reads_held_; }
  void advance(uint64_t until_ck);
  bool idle() const { return reads_queued_.empty() && writes_queued_.empty() && !reads_.count && !writes_.count; }
  void reset();

  struct Counters {
    uint64_t read_bytes = 0, write_bytes = 0, row_hits = 0, row_closed = 0, row_misses = 0, refreshes = 0;
    uint64_t turnarounds = 0, activates = 0, busy_ck = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  enum Found : uint8_t { kHit, kClosed, kMiss };  // how a request found its bank
  struct Entry {
    Burst* burst;
    uint32_t row;
    uint16_t granule;
    uint8_t bank, group;
    uint32_t overtaken;
  };
  struct Window {
    std::array<Entry, kMaxWindow> entries;
    uint32_t count = 0;
  };
  struct Bank {
    uint32_t row;
    bool open;
    Found found;  // what the first column command to the row that is open, or opens next, counts as
    uint64_t read_ck, write_ck, precharge_ck, activate_ck;  // earliest of each command
  };
  struct WriteGranule { uint64_t address, arrive_ck; };

  void place(Entry& entry, uint64_t address) const;
  bool admit(uint64_t ck);
  void add(Window& window, Burst* burst, uint16_t granule, uint64_t address);
  uint32_t look_ahead(uint64_t ck);
  void catch_up_refresh(uint64_t ck);
  void choose_direction();
  uint64_t column(uint64_t ck);
  uint64_t row(uint64_t ck);
  void issue(Window& window, uint32_t index, uint64_t ck);
  uint64_t activate_ready(uint32_t bank) const;
  uint64_t next_arrival() const;
  uint64_t step(uint64_t ck);

  const DramTiming& t_;
  SharedCap* cap_;
  uint64_t first_refresh_;
  std::array<Bank, kMaxBanks> banks_;
  std::deque<Burst*> reads_queued_;
  std::deque<WriteGranule> writes_queued_;
  Window reads_, writes_;
  std::array<Entry, 2> ahead_;  // the next requests that have no room in the window yet
  uint32_t reads_held_ = 0, writes_held_ = 0;
  bool writing_ = false;
  bool row_work_ = false;  // a request may need an activate or a precharge
  uint32_t run_ = 0;
  uint64_t next_ck_ = kNever, next_refresh_ = 0, blocked_ck_ = 0;
  // Earliest read and write command by bank group, and the activates that RRD and FAW look back to.
  std::array<uint64_t, kMaxBanks> read_group_ck_, write_group_ck_, activate_group_ck_;
  uint64_t read_any_ck_ = 0, write_any_ck_ = 0, activate_any_ck_ = 0;
  std::array<uint64_t, 4> activates_;  // earliest next activate by FAW after each of the last four
  uint32_t activate_slot_ = 0;
  Counters counters_;
};

}  // namespace loom
