// The one function that SystemVerilog calls with arrays: unwraps them for loom_cycle.
#include <svdpi.h>

#include "model.h"

extern "C" int loom_dpi_cycle(void* memory, svBit reset, const svOpenArrayHandle request,
                              const svOpenArrayHandle response) {
  return loom_cycle(memory, reset, static_cast<const uint32_t*>(svGetArrayPtr(request)),
                    static_cast<uint32_t*>(svGetArrayPtr(response)));
}
