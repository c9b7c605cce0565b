#include "channel.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace loom {

DramTiming::DramTiming(const Parameters& p) {
  const auto get = [&](const char* key) { return static_cast<uint32_t>(p.whole(key)); };
  cas = get("cas_latency_ck");
  cas_write = get("cas_write_latency_ck");
  data = get("data_ck");
  ccd_short = get("ccd_short_ck");
  ccd_long = get("ccd_long_ck");
  rrd_short = get("rrd_short_ck");
  rrd_long = get("rrd_long_ck");
  faw = get("faw_ck");
  rcd_read = get("rcd_read_ck");
  rcd_write = get("rcd_write_ck");
  rp = get("rp_ck");
  ras = get("ras_ck");
  rc = get("rc_ck");
  wtr_short = get("wtr_short_ck");
  wtr_long = get("wtr_long_ck");
  read_to_write_gap = get("read_to_write_gap_ck");
  write_recovery = get("write_recovery_ck");
  read_to_precharge = get("read_to_precharge_ck");
  refresh_interval = get("refresh_interval_ck");
  refresh = get("refresh_ck");
  granule_bytes = get("granule_bytes");
  window = get("window_granules");
  write_window = get("write_window_granules");
  read_buffer = get("read_buffer_granules");
  write_buffer = get("write_buffer_granules");
  queue_bursts = get("queue_bursts");
  write_high = get("write_high_granules");
  direction = get("direction_granules");
  refusals = get("refusals_limit");
  bank_groups = get("bank_groups");
  banks_per_group = get("banks_per_group");
  if (window > kMaxWindow || write_window > kMaxWindow || bank_groups * banks_per_group > kMaxBanks)
    throw ConfigError("a window, or the number of banks, is more than 64");
  granule_shift = __builtin_ctz(granule_bytes);
  uint32_t shift = granule_shift;
  std::istringstream words(p.word("address_map"));
  for (std::string word; words >> word;) {
    const uint32_t bits = word.size() > 1 ? static_cast<uint32_t>(std::stoul(word.substr(1))) : 32;
    const auto mask = static_cast<uint32_t>((uint64_t{1} << bits) - 1);
    if (word[0] == 'R') {
      row_shift = shift;
      row_mask = mask;
    } else if (word[0] != 'C') {
      map.push_back({word[0], shift, mask});
    }
    shift += bits;
  }
}

Channel::Channel(const DramTiming& timing, SharedCap* cap, uint64_t first_refresh_ck)
    : t_(timing), cap_(cap), first_refresh_(first_refresh_ck) {
  reset();
}

void Channel::reset() {
  banks_.fill(Bank{0, false, kClosed, 0, 0, 0, 0});
  reads_queued_.clear();
  writes_queued_.clear();
  reads_.count = writes_.count = 0;
  reads_held_ = writes_held_ = 0;
  writing_ = row_work_ = false;
  run_ = 0;
  next_ck_ = kNever;
  if (next_refresh_ == 0) next_refresh_ = first_refresh_;
  read_group_ck_.fill(0);
  write_group_ck_.fill(0);
  activate_group_ck_.fill(0);
  activates_.fill(0);
  read_any_ck_ = write_any_ck_ = activate_any_ck_ = 0;
}

void Channel::push_read(Burst* burst) {
  reads_queued_.push_back(burst);
  row_work_ = true;
  next_ck_ = std::min(next_ck_, burst->arrive_ck);
}

void Channel::push_write(uint64_t address, uint64_t arrive_ck) {
  writes_queued_.push_back({address, arrive_ck});
  ++writes_held_;
  counters_.write_bytes += t_.granule_bytes;
  next_ck_ = std::min(next_ck_, arrive_ck);
}

void Channel::advance(uint64_t until_ck) {
  while (next_ck_ <= until_ck) {
    const uint64_t ck = next_ck_;
    next_ck_ = step(ck);
  }
}

void Channel::place(Entry& entry, uint64_t address) const {
  uint32_t group = 0, bank = 0, group_bits = 0, bank_bits = 0;
  for (const auto& field : t_.map) {
    const auto value = static_cast<uint32_t>(address >> field.shift) & field.mask;
    if (field.letter == 'G') {
      group |= value << group_bits;
      group_bits += __builtin_popcount(field.mask);
    } else {
      bank |= value << bank_bits;
      bank_bits += __builtin_popcount(field.mask);
    }
  }
  entry.group = static_cast<uint8_t>(group);
  entry.bank = static_cast<uint8_t>(group * t_.banks_per_group + bank);
  entry.row = static_cast<uint32_t>(address >> t_.row_shift) & t_.row_mask;
}

void Channel::add(Window& window, Burst* burst, uint16_t granule, uint64_t address) {
  Entry& entry = window.entries[window.count++];
  place(entry, address);
  entry.burst = burst;
  entry.granule = granule;
  entry.overtaken = 0;
  const Bank& bank = banks_[entry.bank];
  row_work_ = row_work_ || !bank.open || bank.row != entry.row;
}

// Moves what has arrived into the windows, in order, as far as there is room. Returns whether anything moved.
bool Channel::admit(uint64_t ck) {
  const uint32_t before = reads_.count + writes_.count;
  while (!reads_queued_.empty() && reads_.count < t_.window && reads_held_ < t_.read_buffer) {
    Burst* burst = reads_queued_.front();
    if (burst->arrive_ck > ck) break;
    const uint16_t granule = burst->issued++;
    if (burst->issued == burst->granules) reads_queued_.pop_front();
    add(reads_, burst, granule, burst->address + uint64_t{granule} * t_.granule_bytes);
    ++reads_held_;
  }
  while (!writes_queued_.empty() && writes_.count < t_.write_window && writes_queued_.front().arrive_ck <= ck) {
    add(writes_, nullptr, 0, writes_queued_.front().address);
    writes_queued_.pop_front();
  }
  return reads_.count + writes_.count != before;
}

// Does the refreshes due by `ck`. A refresh needs all rows closed; the bank that can be precharged last decides.
void Channel::catch_up_refresh(uint64_t ck) {
  while (next_refresh_ <= ck) {
    uint64_t start = std::max(next_refresh_, blocked_ck_);
    bool any_open = false;
    for (uint32_t b = 0; b < t_.bank_groups * t_.banks_per_group; ++b) {
      if (!banks_[b].open) continue;
      any_open = true;
      start = std::max(start, banks_[b].precharge_ck);
      banks_[b].open = false;
      banks_[b].found = kClosed;
    }
    blocked_ck_ = start + (any_open ? t_.rp : 0) + t_.refresh;
    for (auto& bank : banks_) bank.activate_ck = std::max(bank.activate_ck, blocked_ck_);
    next_refresh_ += t_.refresh_interval;
    ++counters_.refreshes;
    row_work_ = true;
  }
}

// Reads go first; writes collect until there are many, or no read waits. A direction once taken is kept for a
// while, because every change idles the data bus.
void Channel::choose_direction() {
  const bool reads = reads_.count != 0, writes = writes_.count != 0;
  bool change;
  if (writing_)
    change = reads && (!writes || run_ >= t_.direction);
  else
    change = writes && (!reads || (writes_held_ >= t_.write_high && run_ >= t_.direction));
  if (!change) return;
  writing_ = !writing_;
  run_ = 0;
  row_work_ = true;
  ++counters_.turnarounds;
}

void Channel::issue(Window& window, uint32_t index, uint64_t ck) {
  Entry& entry = window.entries[index];
  Bank& bank = banks_[entry.bank];
  if (writing_) {
    write_any_ck_ = ck + t_.ccd_short;
    write_group_ck_[entry.group] = ck + t_.ccd_long;
    const uint64_t end = ck + t_.cas_write + t_.data;
    read_any_ck_ = std::max(read_any_ck_, end + t_.wtr_short);
    read_group_ck_[entry.group] = std::max(read_group_ck_[entry.group], end + t_.wtr_long);
    bank.precharge_ck = std::max(bank.precharge_ck, end + t_.write_recovery);
    --writes_held_;
  } else {
    read_any_ck_ = ck + t_.ccd_short;
    read_group_ck_[entry.group] = ck + t_.ccd_long;
    const uint64_t end = ck + t_.cas + t_.data + t_.read_to_write_gap;
    write_any_ck_ = std::max(write_any_ck_, end > t_.cas_write ? end - t_.cas_write : 0);
    bank.precharge_ck = std::max(bank.precharge_ck, ck + t_.read_to_precharge);
    entry.burst->ready_ck[entry.granule] = ck + t_.cas + t_.data;
    counters_.read_bytes += t_.granule_bytes;
  }
  if (cap_->interval_ck > 0) {
    // Half a microsecond of credit, as the bulk capacitance of a supply gives.
    cap_->free_ck = std::max(cap_->free_ck, static_cast<double>(ck) - 450.0) + cap_->interval_ck;
  }
  counters_.busy_ck += t_.data;
  counters_.row_hits += bank.found == kHit;
  counters_.row_closed += bank.found == kClosed;
  counters_.row_misses += bank.found == kMiss;
  bank.found = kHit;
  ++run_;
  for (uint32_t i = 0; i < index; ++i) ++window.entries[i].overtaken;
  --window.count;
  std::memmove(&window.entries[index], &window.entries[index + 1], (window.count - index) * sizeof(Entry));
}

// Issues the oldest column command that is possible now; returns when the next may be.
uint64_t Channel::column(uint64_t ck) {
  Window& window = writing_ ? writes_ : reads_;
  const auto& group_ck = writing_ ? write_group_ck_ : read_group_ck_;
  const uint64_t any_ck = writing_ ? write_any_ck_ : read_any_ck_;
  if (!window.count) return kNever;
  if (any_ck > ck) return any_ck;
  if (cap_->interval_ck > 0 && cap_->free_ck > static_cast<double>(ck)) return static_cast<uint64_t>(cap_->free_ck) + 1;
  const Entry& oldest = window.entries[0];
  const int kept_bank = oldest.overtaken >= t_.refusals ? oldest.bank : -1;
  uint64_t soonest = kNever;
  for (uint32_t i = 0; i < window.count; ++i) {
    const Entry& entry = window.entries[i];
    const Bank& bank = banks_[entry.bank];
    if (!bank.open || bank.row != entry.row) continue;
    if (entry.bank == kept_bank && entry.row != oldest.row) continue;
    const uint64_t ready = std::max(writing_ ? bank.write_ck : bank.read_ck, group_ck[entry.group]);
    if (ready <= ck) {
      issue(window, i, ck);
      return ck + t_.ccd_short;
    }
    soonest = std::min(soonest, ready);
  }
  return soonest;
}

// The next two granules of the current direction that the full window leaves waiting: their rows may be prepared in
// banks that nothing in the windows uses. Without this a burst as long as the window would stop at every new row.
uint32_t Channel::look_ahead(uint64_t ck) {
  uint32_t count = 0;
  if (writing_) {
    for (; count < ahead_.size() && count < writes_queued_.size() && writes_queued_[count].arrive_ck <= ck; ++count)
      place(ahead_[count], writes_queued_[count].address);
  } else if (!reads_queued_.empty() && reads_queued_.front()->arrive_ck <= ck) {
    const Burst& burst = *reads_queued_.front();
    for (; count < ahead_.size() && burst.issued + count < burst.granules; ++count)
      place(ahead_[count], burst.address + uint64_t{burst.issued + count} * t_.granule_bytes);
  }
  return count;
}

uint64_t Channel::activate_ready(uint32_t bank) const {
  const uint32_t group = bank / t_.banks_per_group;
  return std::max({banks_[bank].activate_ck, activate_any_ck_, activate_group_ck_[group], activates_[activate_slot_]});
}

// Issues one activate or precharge for the oldest request that needs it; returns when the next may be issued.
// Rows that requests of the current direction still want stay open; the other direction may prepare the rest.
uint64_t Channel::row(uint64_t ck) {
  if (!row_work_) return kNever;
  uint64_t wanted = 0, missed = 0;  // banks whose open row is wanted; banks with a request for another row
  std::array<Entry*, 2 * kMaxWindow + 2> oldest;
  uint32_t candidates = 0;
  for (int pass = 0; pass < 2; ++pass) {
    Window& window = (pass == 0) == writing_ ? writes_ : reads_;
    const uint64_t taken = wanted | missed;
    for (uint32_t i = 0; i < window.count; ++i) {
      Entry& entry = window.entries[i];
      const uint64_t bit = uint64_t{1} << entry.bank;
      if (pass && (taken & bit)) continue;
      const Bank& bank = banks_[entry.bank];
      if (bank.open && bank.row == entry.row) {
        if (!(pass == 0 && window.entries[0].overtaken >= t_.refusals && window.entries[0].bank == entry.bank &&
              window.entries[0].row != entry.row))
          wanted |= bit;
      } else if (!(missed & bit)) {
        missed |= bit;
        oldest[candidates++] = &entry;
      }
    }
  }
  for (uint32_t i = 0, count = look_ahead(ck); i < count; ++i) {
    const uint64_t bit = uint64_t{1} << ahead_[i].bank;
    const Bank& bank = banks_[ahead_[i].bank];
    if ((wanted | missed) & bit || (bank.open && bank.row == ahead_[i].row)) continue;
    missed |= bit;
    oldest[candidates++] = &ahead_[i];
  }
  if (!candidates) {
    row_work_ = false;
    return kNever;
  }
  uint64_t soonest = kNever;
  for (uint32_t i = 0; i < candidates; ++i) {
    Entry& entry = *oldest[i];
    if (wanted >> entry.bank & 1) continue;
    Bank& bank = banks_[entry.bank];
    const uint64_t ready = bank.open ? bank.precharge_ck : activate_ready(entry.bank);
    if (ready > ck) {
      soonest = std::min(soonest, ready);
      continue;
    }
    if (bank.open) {
      bank.open = false;
      bank.activate_ck = std::max(bank.activate_ck, ck + t_.rp);
      bank.found = kMiss;
    } else {
      bank.open = true;
      bank.row = entry.row;
      bank.read_ck = ck + t_.rcd_read;
      bank.write_ck = ck + t_.rcd_write;
      bank.precharge_ck = ck + t_.ras;
      bank.activate_ck = ck + t_.rc;
      activate_any_ck_ = ck + t_.rrd_short;
      activate_group_ck_[entry.group] = ck + t_.rrd_long;
      activates_[activate_slot_] = ck + t_.faw;
      activate_slot_ = (activate_slot_ + 1) % activates_.size();
      ++counters_.activates;
    }
    return ck + 1;
  }
  return soonest;
}

uint64_t Channel::next_arrival() const {
  uint64_t next = kNever;
  if (!reads_queued_.empty() && reads_.count < t_.window && reads_held_ < t_.read_buffer)
    next = reads_queued_.front()->arrive_ck;
  if (!writes_queued_.empty() && writes_.count < t_.write_window)
    next = std::min(next, writes_queued_.front().arrive_ck);
  return next;
}

uint64_t Channel::step(uint64_t ck) {
  catch_up_refresh(ck);
  const bool moved = admit(ck);
  if (idle()) return kNever;
  for (uint32_t i = 0, count = moved && !row_work_ ? look_ahead(ck) : 0; i < count; ++i)
    row_work_ = row_work_ || !banks_[ahead_[i].bank].open || banks_[ahead_[i].bank].row != ahead_[i].row;
  // Return buffer that is full is freed from outside: look again soon.
  uint64_t next = reads_held_ >= t_.read_buffer ? ck + 2 : kNever;
  if (ck < blocked_ck_) return std::min(blocked_ck_, std::max(ck + 1, next));
  choose_direction();
  next = std::min(next, column(ck));
  next = std::min(next, row(ck));
  if (reads_.count + writes_.count) next = std::min(next, next_refresh_);
  next = std::min(next, next_arrival());
  return std::max(next, ck + 1);
}

}  // namespace loom
