#include "model.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "memory.h"

namespace {

std::vector<loom::Memory*>& open_memories() {
  static std::vector<loom::Memory*> memories;
  return memories;
}

loom::Memory* of(void* memory) { return static_cast<loom::Memory*>(memory); }

}  // namespace

extern "C" {

void* loom_open_text(const char* text, const char* name, int ports, int data_bits) {
  try {
    auto* memory = new loom::Memory(text, name, ports, data_bits);
    open_memories().push_back(memory);
    return memory;
  } catch (const std::exception& error) {
    fprintf(stderr, "memory model: %s\n", error.what());
    return nullptr;
  }
}

void* loom_open(const char* name, int ports, int data_bits) {
  const char* path = getenv("LOOM_MEMORY_CONFIG");
  std::ifstream file(path ? path : "");
  if (!file) {
    fprintf(stderr, "memory model: LOOM_MEMORY_CONFIG names no readable file: %s\n", path ? path : "(not set)");
    return nullptr;
  }
  std::ostringstream text;
  text << file.rdbuf();
  return loom_open_text(text.str().c_str(), name, ports, data_bits);
}

int loom_configure(void* memory, const char* text) {
  try {
    of(memory)->configure(text);
    return 0;
  } catch (const std::exception& error) {
    fprintf(stderr, "memory model: %s\n", error.what());
    return -1;
  }
}

int loom_cycle(void* memory, int reset, const uint32_t* request, uint32_t* response) {
  return of(memory)->cycle(reset != 0, request, response);
}

void loom_idle(void* memory, uint64_t edges) { of(memory)->idle(edges); }

void* loom_find(const char* name) {
  for (auto* memory : open_memories())
    if (memory->name() == name) return memory;
  return nullptr;
}

uint8_t* loom_store(void* memory) { return of(memory)->store().data(); }
uint64_t loom_store_bytes(void* memory) { return of(memory)->store().bytes(); }
const char* loom_counters(void* memory) { return of(memory)->counters(); }
const char* loom_errors(void* memory, int at_end) { return of(memory)->errors(at_end != 0); }

int loom_refuse(void* memory, int port, int write, uint64_t skip) {
  return of(memory)->refuse(port, write != 0, skip) ? 0 : -1;
}

void loom_close(void* memory) {
  auto& memories = open_memories();
  for (size_t i = 0; i < memories.size(); ++i)
    if (memories[i] == memory) memories.erase(memories.begin() + static_cast<long>(i));
  delete of(memory);
}

}  // extern "C"
