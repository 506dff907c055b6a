/* The pool of a benchmark, and the line that a program prints. */
#ifndef BENCH_POOL_H
#define BENCH_POOL_H

#include <libpmemobj.h>

#include "common.h"

/* The layout's name of every pool. */
#define POOL_LAYOUT "nearpm-bench"

/* Creates the pool that the options name; exits where that fails. */
PMEMobjpool *pool_create(const struct options *options);

/* Prints the line of results: the program's parameters are the rest of a JSON object, without its
 * braces. */
__attribute__((format(printf, 3, 4))) void pool_report(const char *program, uint64_t ops, const char *parameters, ...);

#endif
