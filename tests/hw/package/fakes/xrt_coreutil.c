/* Stands in for XRT's C library: a register reads as its own offset plus 0x1000, a high word as 7; with
   FAKE_REGISTER, as that number, and a high word as 0; with FAKE_REGISTERS, as the file of that name has it.
   The status of vadd is FAKE_STATUS, or 0. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const char *event, unsigned value)
{
    FILE *file = fopen(getenv("FAKE_LOG"), "a");
    fprintf(file, "[\"%s\", %u]\n", event, value);
    fclose(file);
}

static int refuses(const char *what)
{
    const char *wanted = getenv("FAKE_REFUSES");
    return wanted && !strcmp(wanted, what);
}

static int device, kernel;

void *xrtDeviceOpen(unsigned index)
{
    say("xrtDeviceOpen", index);
    return refuses("device") ? NULL : &device;
}

void xrtDeviceGetXclbinUUID(void *handle, unsigned char *out)
{
    if (handle != &device)
        abort();
    memset(out, 0x5a, 16);
}

void *xrtPLKernelOpenExclusive(void *handle, const unsigned char *uuid, const char *name)
{
    if (handle != &device || uuid[0] != 0x5a || uuid[15] != 0x5a || strncmp(name, "loomwork_", 9))
        abort();
    say("xrtPLKernelOpenExclusive", 0);
    return refuses("kernel") ? NULL : &kernel;
}

int xrtKernelReadRegister(void *handle, uint32_t offset, uint32_t *value)
{
    if (handle != &kernel)
        abort();
    say("read", offset);
    const char *given = getenv("FAKE_REGISTER"), *path = getenv("FAKE_REGISTERS"), *status = getenv("FAKE_STATUS");
    if (path) {
        FILE *file = fopen(path, "rb");
        if (fseek(file, offset, SEEK_SET) || fread(value, 4, 1, file) != 1)
            abort();
        fclose(file);
    } else if (given)
        *value = offset & 4 ? 0 : strtoul(given, NULL, 0);
    else if (offset / 8 == 0x438 / 8)
        *value = status && !(offset & 4) ? strtoul(status, NULL, 0) : 0;
    else
        *value = offset & 4 ? 7 : 0x1000 + offset;
    return refuses("register");
}

int xrtKernelClose(void *handle)
{
    say("xrtKernelClose", handle == &kernel);
    return 0;
}

int xrtDeviceClose(void *handle)
{
    say("xrtDeviceClose", handle == &device);
    return 0;
}
