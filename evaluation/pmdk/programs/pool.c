#define _GNU_SOURCE
#include "pool.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

PMEMobjpool *pool_create(const struct options *options)
{
    if (options->pool == NULL)
        fail("--pool is missing");
    PMEMobjpool *pool = pmemobj_create(options->pool, POOL_LAYOUT, options->pool_bytes, 0600);
    if (pool == NULL)
        fail("the pool %s cannot be created: %s", options->pool, pmemobj_errormsg());
    return pool;
}

/* The library that the loader chose, so that nobody need trust a search path. */
static const char *library(void)
{
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "pmemobj_create");
    if (symbol == NULL || dladdr(symbol, &info) == 0)
        fail("the library cannot be found in this process");
    return info.dli_fname;
}

void pool_report(const char *program, uint64_t ops, const char *parameters, ...)
{
    va_list arguments;
    va_start(arguments, parameters);
    printf("{\"program\":\"%s\",\"ops\":%" PRIu64 ",\"nanoseconds\":%" PRIu64 ",\"processor_nanoseconds\":%" PRIu64
           ",\"library\":\"%s\",",
           program, ops, bench_nanoseconds(), bench_processor_nanoseconds(), library());
    vprintf(parameters, arguments);
    puts("}");
    va_end(arguments);
}
