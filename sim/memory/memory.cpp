#include "memory.h"

#include <algorithm>

#include "dram.h"
#include "pipe.h"

namespace loom {

Memory::Memory(const std::string& text, const std::string& name, int ports, int data_bits)
    : name_(name), ports_count_(ports), data_bytes_(static_cast<uint32_t>(data_bits) / 8) {
  if (ports < 1 || ports > 64) throw ConfigError("a memory has 1 to 64 ports, not " + std::to_string(ports));
  if (data_bits < 32 || data_bits > 1024 || data_bits & (data_bits - 1))
    throw ConfigError("a port has 32 to 1024 bits, a power of two, not " + std::to_string(data_bits));
  request_words_ = kRequestStrobe + (data_bytes_ + 31) / 32 + data_bytes_ / 4;
  response_words_ = kResponseData + data_bytes_ / 4;
  shown_.resize(static_cast<size_t>(ports) * response_words_);
  configure(text);
}

void Memory::configure(const std::string& text) {
  const Parameters parameters(text, name_);
  const std::string model = parameters.word("model");
  const uint64_t bytes = parameters.whole("size_bytes"), base = parameters.whole("base_address");
  const auto max_beats = static_cast<uint32_t>(parameters.whole("max_burst_beats"));
  const auto percent = static_cast<uint32_t>(parameters.whole("jitter_percent"));
  const auto latency = static_cast<uint32_t>(parameters.whole("jitter_latency_cycles"));
  const uint64_t seed = parameters.whole("seed");
  const std::string trace = parameters.word("trace");
  const std::vector<uint64_t> tampers = parameters.list("tampers");
  if (percent > 95) throw ConfigError("[" + name_ + "]: jitter_percent must be at most 95");
  if (bytes == 0 || bytes % 4096) throw ConfigError("[" + name_ + "]: size_bytes must be a multiple of 4096");

  std::unique_ptr<Backend> backend;
  if (model == "hbm" || model == "ddr") {
    backend = std::make_unique<Dram>(parameters, model == "hbm", ports_count_);
    if (parameters.whole("channels") * parameters.whole("channel_bytes") != bytes)
      throw ConfigError("[" + name_ + "]: size_bytes must be channels x channel_bytes");
  } else if (model == "host" || model == "fast") {
    backend = std::make_unique<Pipe>(parameters, model == "host", ports_count_, data_bytes_);
  } else {
    throw ConfigError("[" + name_ + "]: model must be hbm, ddr, host or fast, not " + model);
  }
  parameters.check_all_used();
  store_.resize(bytes);
  backend_ = std::move(backend);
  tampers_ = std::make_unique<Tampers>(tampers, base, bytes, store_.data());
  trace_ = trace.empty() ? nullptr : std::make_unique<Trace>(trace);
  ports_.clear();
  violations_.clear();
  for (int i = 0; i < ports_count_; ++i)
    ports_.push_back(std::make_unique<Port>(i, data_bytes_, base, store_.data(), *backend_,
                                            Checker(violations_, i, data_bytes_, max_beats, base, bytes),
                                            Jitter(seed * 64 + static_cast<uint64_t>(i), percent, latency), *tampers_,
                                            trace_.get()));
  edge_ = 0;
  ended_ = false;
}

bool Memory::cycle(bool reset, const uint32_t* request, uint32_t* response) {
  const uint64_t edge = edge_++;
  if (reset) {
    for (int i = 0; i < ports_count_; ++i)
      ports_[i]->reset(edge, request + i * request_words_, shown_.data() + i * response_words_);
    if (!in_reset_) backend_->reset();
    backend_->skip(edge + 1);
    const bool changed = !in_reset_;
    in_reset_ = true;
    std::copy(shown_.begin(), shown_.end(), response);
    return changed;
  }
  in_reset_ = false;
  bool active = false;
  for (int i = 0; i < ports_count_; ++i) {
    ports_[i]->take(edge, request + i * request_words_, shown_.data() + i * response_words_);
    active = active || !ports_[i]->quiet();
  }
  if (backend_->idle())
    backend_->skip(edge + 1);
  else
    backend_->advance(edge + 1);
  if (!active) return false;
  for (int i = 0; i < ports_count_; ++i)
    if (!ports_[i]->quiet()) ports_[i]->show(edge, shown_.data() + i * response_words_);
  std::copy(shown_.begin(), shown_.end(), response);
  return true;
}

void Memory::idle(uint64_t edges) {
  edge_ += edges;
  if (backend_->idle())
    backend_->skip(edge_);
  else
    backend_->advance(edge_);
}

const char* Memory::counters() {
  text_ = "{\"edges\":" + std::to_string(edge_) + ",\"ports\":[";
  for (int i = 0; i < ports_count_; ++i) text_ += (i ? "," : "") + ports_[i]->counters();
  text_ += "],\"channels\":" + backend_->channel_counters() + "}";
  return text_.c_str();
}

const char* Memory::errors(bool at_end) {
  if (at_end && !ended_)
    for (auto& port : ports_) port->end(edge_);
  if (at_end && trace_ && !trace_->flush()) violations_.add(0, edge_, "the trace could not be written");
  ended_ = ended_ || at_end;
  text_ = violations_.text();
  return text_.c_str();
}

}  // namespace loom
