/* A profiler for tests: writes the names of NVTX ranges to the file NVTX_RECORD, one event a line. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*function)(void);
typedef const void *(*export_table)(uint32_t number);

typedef struct {
    size_t struct_size;
    int (*get_module_function_table)(int module, function ***table, unsigned int *size);
} callbacks;

typedef struct {
    size_t struct_size;
    uint32_t version;
    uint32_t reserved;
    void (*set_injection_version)(uint32_t version);
} version_info;

enum { CALLBACKS = 1, VERSION = 3, CORE = 1, MODULES = 7, RANGE_PUSH = 9, RANGE_POP = 11 };

static FILE *record;
static int depth;

static int push(const char *name) {
    fprintf(record, "push %s\n", name);
    fflush(record);
    return depth++;
}

static int pop(void) {
    fprintf(record, "pop\n");
    fflush(record);
    return --depth;
}

int InitializeInjectionNvtx2(export_table get) {
    const callbacks *functions = get(CALLBACKS);
    const version_info *version = get(VERSION);
    function **table;
    unsigned int size;
    record = fopen(getenv("NVTX_RECORD"), "w");
    if (!record || !functions || functions->struct_size < sizeof(callbacks) || !version || version->version < 2)
        return 0;
    version->set_injection_version(3);
    for (int module = CORE; module < MODULES; module++)
        if (!functions->get_module_function_table(module, &table, &size)) return 0;
    if (!functions->get_module_function_table(CORE, &table, &size) || size <= RANGE_POP) return 0;
    *table[RANGE_PUSH] = (function)push;
    *table[RANGE_POP] = (function)pop;
    return 1;
}
